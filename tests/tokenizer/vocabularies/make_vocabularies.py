#!/usr/bin/env python3
"""Writes the vocabularies of this folder, and texts with the ids that other implementations give.

    python3 -m venv venv && venv/bin/pip install tokenizers sentencepiece protobuf gguf
    venv/bin/python make_vocabularies.py .

NAME.gguf is a vocabulary without tensors, as llama.cpp's converter writes it; NAME.json has its cases.
Unigram: trained by SentencePiece, whose ids they are; Hugging Face's tokenizers cut out the special
tokens. WordPiece: trained by tokenizers, whose ids they are. Both are small, on the text below.
"""

import collections
import json
import pathlib
import random
import sys
import unicodedata

import gguf
import sentencepiece
import tokenizers
from sentencepiece import sentencepiece_model_pb2
from tokenizers import decoders, models, normalizers, pre_tokenizers, processors, trainers

TEXT = """The quick brown fox jumps over the lazy dog. A model reads the text and writes the next word.
She said: "I can't believe it's not butter!" They weren't here; we'll see what they've done, don't you?
Numbers such as 3.14159, 1,000,000 and 2026-11-30 stand among words. Prices: $5, 10 %, (a + b) = c.
Der schnelle braune Fuchs springt über den faulen Hund. Straße, Größe, Äpfel und Öl sind schön.
Le renard brun saute par-dessus le chien paresseux. L'été, où êtes-vous allés ? Ça va, garçon !
El zorro marrón salta sobre el perro perezoso. ¿Cómo estás? ¡Muy bien, mañana será otro día!
Быстрая коричневая лиса прыгает через ленивую собаку. Ёлка и чай. Привет, мир!
Η γρήγορη καφέ αλεπού πηδάει πάνω από το τεμπέλικο σκυλί. Καλημέρα κόσμε.
敏捷的棕色狐狸跳过了懒狗。今天天气很好，我们去公园吧。模型读取文本并写出下一个词。
素早い茶色の狐がのろまな犬を飛び越える。こんにちは、世界！カタカナとひらがな。
빠른 갈색 여우가 게으른 개를 뛰어넘는다. 안녕하세요, 세계! 오늘은 날씨가 좋습니다.
الثعلب البني السريع يقفز فوق الكلب الكسول. مرحبا بالعالم!
השועל החום המהיר קופץ מעל הכלב העצלן. שלום עולם!
तेज़ भूरी लोमड़ी आलसी कुत्ते के ऊपर कूदती है। नमस्ते दुनिया!
สุนัขจิ้งจอกสีน้ำตาลกระโดดข้ามสุนัขขี้เกียจ สวัสดีชาวโลก
Con cáo nâu nhanh nhẹn nhảy qua con chó lười biếng. Xin chào thế giới!
for (int i = 0; i < n; ++i) { sum += values[i] * weights[i]; }  // the inner loop
The models read the texts, the readers wrote words, a writer writes: reading, writing, rewritten.
"""

PIECES = [
    " ", "  ", "     ", "\t", "\n", "\r\n", " \n ", "\u00a0", "\u3000", "\u2003", "\u200b", "\u2028", "\u0085",
    "\x00", "\x07", "\x1b", "\x7f", "\ufeff", "\u200d", "\u00ad", "\ufffd", "\ue000", "\uffff", "\U0010ffff",
    "é", "e\u0301", "e\u0301\u0323", "\u0301", "\u0301\u0301a", "ﬁ", "ﬀ", "Ⅷ", "①", "½", "ＡＢｃ", "！", "ﾊﾟ", "ｶﾞ", "㎏",
    "İ", "ı", "ß", "ẞ", "Σας", "ΟΔΟΣ", "Ω", "Å", "K", "Ǆ", "ﷺ", "…", "“a”", "—", "‑", "€", "£5", "∑", "√2", "°C",
    "👍", "👩‍🚀", "🇩🇪", "👍🏽", "🧑‍🤝‍🧑", "☺️", "𝐀𝒃", "𠀀", "𪜀", "豈", "丽", "한", "한", "각", "กำ", "ไทย", "हिन्दी", "க்ஷ",
    "ა", "Ა", "ა", "ꭰ", "Ꭰ", "አማርኛ", "ᠮ", "ༀ", "עִבְרִית", "قُرْآن", "١٢٣", "०१२", "x²", "H₂O",
    "▁", "▁▁", "##", "##ing", "[", "]", "[UNK", "<", ">", "</", "<0x41>", "<unk", "_", "__init__", "`", "^", "~|", "\\", "$",
    "don't", "CAN'T", "e.g.", "3.14", "1e-5", "http://a.b/c?d=e&f", "user@host.org", "C++", "a_b-c", "NASA", "iPhone",
    "the", "The", "THE", "reading", "unwritten", "Äpfel", "ÄPFEL", "mañana", "Ёлка", "ёлка", "狐狸", "こんにちは", "안녕", "مرحبا",
]
LONG = ["a" * 100, "a" * 101, "é" * 100, "the" * 40, "▁" * 20, "x " * 40, ". " * 20, "狐" * 60, "\u0301" * 30, "👍" * 25]


def texts(seed, special):
    """Texts of every kind: (bytes, parse_special)."""
    rng = random.Random(seed)
    lines = TEXT.splitlines()
    plain = ["", " ", *PIECES, *LONG]
    plain += [line[:40 + 5 * (n % 5)] for n, line in enumerate(lines)]
    for _ in range(60):
        parts = []
        for _ in range(rng.randint(2, 6)):
            parts.append(rng.choice(PIECES) if rng.random() < 0.6 else rng.choice(rng.choice(lines).split()))
            parts.append(rng.choice(["", " ", " ", "  ", "\n"]))
        plain.append("".join(parts))
    for _ in range(25):  # any characters; tokenizers takes no later ones of U+2Exx for punctuation
        plain.append("".join(chr(rng.randrange(0x20, 0x2E00)) for _ in range(8)))
    result = [(text.encode(), False) for text in plain]
    for _ in range(20):
        parts = [rng.choice(special) if rng.random() < 0.5 else rng.choice(PIECES + ["a", " the dog "]) for _ in range(5)]
        result.append(("".join(parts).encode(), True))
    for token in special:
        result += [(f"the {token}dog".encode(), parse) for parse in (False, True)]
    for _ in range(25):  # not UTF-8
        good = rng.choice(lines).encode()[:12]
        result.append((good + rng.randbytes(rng.randint(1, 5)) + rng.choice(PIECES).encode()[:-1] + b"a", False))
    result += [(bytes([b]) + b"a", False) for b in (0x80, 0xC0, 0xE2, 0xED, 0xF0, 0xF5, 0xFF)]
    return list(dict.fromkeys(result))


def write_cases(path, cases):
    lines = []
    for text, parse, surrounded, ids, decoded in cases:
        case = {}
        try:
            case["text"] = text.decode()
        except UnicodeDecodeError:
            case["hex"] = text.hex()
        if parse:
            case["parse_special"] = True
        if surrounded:
            case["add_special"] = True
        case["ids"] = ids
        if decoded is not None:
            case["decoded"] = decoded
        lines.append(json.dumps(case, ensure_ascii=False, separators=(",", ":")))
    path.write_text('{"cases":[\n' + ",\n".join(lines) + "\n]}\n", encoding="utf-8")


def rules():
    """A part of what SentencePiece's nmt_nfkc does, and a key of three characters."""
    table = {}
    ranges = [(0xA0, 0x180), (0x2000, 0x2070), (0x2100, 0x2180), (0x2460, 0x2474), (0x3000, 0x3001), (0x1E00, 0x1E10),
              (0xFB00, 0xFB07), (0xFDFA, 0xFDFB), (0xFF01, 0xFFA0), (0x3380, 0x33A0), (0x1D400, 0x1D410), (0x2F800, 0x2F810)]
    for first, end in ranges:
        for code in range(first, end):
            character = chr(code)
            normal = unicodedata.normalize("NFKC", character)
            if normal != character:
                table[character] = normal
            apart = unicodedata.normalize("NFD", character)
            if apart != character and unicodedata.normalize("NFC", apart) == character:
                table[apart] = character
    for code in (0x09, 0x0A, 0x0D, 0x2028, 0x2029, 0x1680):
        table[chr(code)] = " "
    for code in (*range(1, 9), 0x0B, *range(0x0E, 0x20), 0x7F, 0x200B, 0xFEFF, 0xAD):
        table[chr(code)] = ""
    table["ﾊﾟ"], table["ｶﾞ"], table["e\u0301\u0323"] = "パ", "ガ", "ẹ\u0301"
    return table


def hugging_face_unigram(proto, special, user_defined):
    """As transformers converts SentencePiece's models."""
    spec = proto.normalizer_spec
    pieces = [(piece.piece, piece.score) for piece in proto.pieces]
    tokenizer = tokenizers.Tokenizer(models.Unigram(pieces, proto.trainer_spec.unk_id, proto.trainer_spec.byte_fallback))
    steps = [normalizers.Precompiled(spec.precompiled_charsmap)] if spec.precompiled_charsmap else []
    if spec.remove_extra_whitespaces:
        steps += [normalizers.Strip(left=False, right=True), normalizers.Replace(tokenizers.Regex(" {2,}"), "▁")]
    tokenizer.normalizer = normalizers.Sequence(steps)
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always" if spec.add_dummy_prefix else "never")
    tokenizer.add_special_tokens([tokenizers.AddedToken(token, normalized=False, special=True) for token in special])
    tokenizer.add_tokens([tokenizers.AddedToken(token, normalized=False) for token in user_defined])
    return tokenizer


def cut(text, tokens):
    """The text's stretches between the tokens, the longest token at each place: (string, is a token)."""
    stretch, at = "", 0
    while at < len(text):
        token = max((t for t in tokens if text.startswith(t, at)), key=len, default=None)
        if token is None:
            stretch += text[at]
            at += 1
            continue
        if stretch:
            yield stretch, False
        yield token, True
        stretch = ""
        at += len(token)
    if stretch:
        yield stretch, False


def make_unigram(folder, name, **options):
    corpus, model = folder / f"{name}.txt", folder / name
    corpus.write_text(TEXT * 3)
    tsv = folder / f"{name}.tsv"
    if options.pop("with_rules", False):
        code = lambda text: " ".join(f"{ord(c):X}" for c in text)
        tsv.write_text("".join(f"{code(key)}\t{code(value)}\n" for key, value in rules().items()))
        options["normalization_rule_tsv"] = str(tsv)
    user_defined = ["<extra_id_0>", "<extra_id_1>", "<extra_id_10>"]
    sentencepiece.SentencePieceTrainer.train(
        input=str(corpus), model_prefix=str(model), model_type="unigram", pad_id=0, eos_id=1, unk_id=2, bos_id=-1,
        control_symbols=["<ctl>"], num_threads=1, minloglevel=2, hard_vocab_limit=False, **options)
    processor = sentencepiece.SentencePieceProcessor(model_file=f"{model}.model")
    proto = sentencepiece_model_pb2.ModelProto.FromString(pathlib.Path(f"{model}.model").read_bytes())
    for made in (corpus, tsv, pathlib.Path(f"{model}.model"), pathlib.Path(f"{model}.vocab")):
        made.unlink(missing_ok=True)

    spec = proto.normalizer_spec
    pieces = [(piece.piece, piece.score, piece.type) for piece in proto.pieces]
    control = [piece for piece, _, kind in pieces if kind in (2, 3)]
    pieces += [(token, -1000.0, gguf.TokenType.USER_DEFINED) for token in user_defined]
    writer = gguf.GGUFWriter(folder / f"{name}.gguf", "t5")
    writer.add_tokenizer_model("t5")
    writer.add_tokenizer_pre("default")
    writer.add_token_list([piece for piece, _, _ in pieces])
    writer.add_token_scores([score for _, score, _ in pieces])
    writer.add_token_types([int(kind) for _, _, kind in pieces])
    writer.add_add_space_prefix(spec.add_dummy_prefix)
    writer.add_remove_extra_whitespaces(spec.remove_extra_whitespaces)
    if spec.precompiled_charsmap:
        writer.add_precompiled_charsmap(spec.precompiled_charsmap)
    writer.add_pad_token_id(0)
    writer.add_eos_token_id(1)
    writer.add_unk_token_id(2)
    writer.add_add_bos_token(False)
    writer.add_add_eos_token(True)
    write_metadata(writer)

    other = hugging_face_unigram(proto, control, user_defined)
    ids_of = {piece: number for number, (piece, _, _) in enumerate(pieces)}
    cases, counts = [], collections.Counter()
    for number, (text, parse) in enumerate(texts(name, control + user_defined)):
        surrounded = number % 7 == 0
        try:
            characters = text.decode()
        except UnicodeDecodeError:
            ids, decoded = processor.encode(text), None
            counts["only SentencePiece"] += 1
        else:
            tokens = user_defined + (control if parse else [])
            parts = list(cut(characters, tokens))
            ids = [i for part, token in parts for i in ([ids_of[part]] if token else processor.encode(part))]
            # SentencePiece takes a U+2581 of the text for a space of its own.
            whole = len(parts) == 1 and not parts[0][1] and "▁" not in characters
            decoded = processor.decode(ids) if whole and 2 not in ids else None
            if parse or not any(token in characters for token in control):
                counts["same" if other.encode(characters, add_special_tokens=False).ids == ids else "differs"] += 1
                if other.encode(characters, add_special_tokens=False).ids != ids:
                    print(name, repr(characters), other.encode(characters).tokens, [pieces[i][0] for i in ids])
        cases.append((text, parse, surrounded, ids + [1] * surrounded, decoded if not surrounded else None))
    write_cases(folder / f"{name}.json", cases)
    print(name, len(pieces), "tokens,", len(cases), "cases; Hugging Face against SentencePiece:", dict(counts))


def write_metadata(writer):
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def make_wordpiece(folder, name, lowercase, size):
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    tokenizer = tokenizers.Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=lowercase)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    trainer = trainers.WordPieceTrainer(vocab_size=size, special_tokens=special, limit_alphabet=300, show_progress=False)
    # Each line once more than the one before: the trainer's order of equal counts is not fixed.
    lines = TEXT.splitlines()
    tokenizer.train_from_iterator([line for n, line in enumerate(lines) for _ in range(n + 1)], trainer)
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)])
    vocabulary = sorted(tokenizer.get_vocab().items(), key=lambda item: item[1])

    def phantom(token):
        if token in special:
            return token
        return token[2:] if token.startswith("##") else "▁" + token

    writer = gguf.GGUFWriter(folder / f"{name}.gguf", "bert")
    writer.add_tokenizer_model("bert")
    writer.add_tokenizer_pre("default")
    writer.add_token_list([phantom(token) for token, _ in vocabulary])
    writer.add_token_types([int(gguf.TokenType.CONTROL if token in special else gguf.TokenType.NORMAL)
                            for token, _ in vocabulary])
    writer.add_pad_token_id(0)
    writer.add_unk_token_id(1)
    writer.add_bos_token_id(2)
    writer.add_eos_token_id(3)
    writer.add_sep_token_id(3)
    writer.add_mask_token_id(4)
    write_metadata(writer)

    without = tokenizers.Tokenizer.from_str(tokenizer.to_str())  # special tokens are plain text
    cases = []
    plain = json.loads(without.to_str())
    plain["added_tokens"], plain["post_processor"] = [], None
    without = tokenizers.Tokenizer.from_str(json.dumps(plain))
    for number, (text, parse) in enumerate(texts(name, special)):
        surrounded = parse and number % 3 == 0
        characters = text.decode(errors="replace")
        chosen = tokenizer if parse else without
        ids = chosen.encode(characters, add_special_tokens=surrounded).ids
        decoded = None
        if not parse and 1 not in ids:
            decoded = tokenizer.decode(ids)
        cases.append((text, parse, surrounded, ids, decoded))
    write_cases(folder / f"{name}.json", cases)
    print(name, len(vocabulary), "tokens,", len(cases), "cases")


def main():
    folder = pathlib.Path(sys.argv[1])
    make_unigram(folder, "t5", vocab_size=500, character_coverage=0.98, with_rules=True)
    make_unigram(folder, "unigram-bytes", vocab_size=620, character_coverage=0.98, byte_fallback=True,
                 normalization_rule_name="identity", add_dummy_prefix=False, remove_extra_whitespaces=False)
    make_wordpiece(folder, "bert-uncased", True, 700)
    make_wordpiece(folder, "bert-cased", False, 700)


if __name__ == "__main__":
    main()
