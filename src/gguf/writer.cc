#include "gguf/writer.h"

#include <algorithm>
#include <array>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/checked_math.h"
#include "base/output_file.h"
#include "base/utf8.h"
#include "gguf/fail.h"
#include "gguf/layout.h"
#include "gguf/split.h"

namespace edgerunner::gguf {
namespace {

struct Entry {
  std::string key;
  std::vector<std::byte> bytes;  // key and value, as the file stores them
};

struct Declared {
  std::string name;
  ElementType type;
  std::vector<std::uint64_t> shape;
  std::uint64_t bytes;
  std::size_t shard = 0;
  std::uint64_t offset = 0;  // from the beginning of the shard's data
};

}  // namespace

class Writer::Impl {
 public:
  Impl(std::filesystem::path path, WriterOptions options)
      : path_(std::move(path)), name_(path_.string()), options_(options) {
    if (options_.version != 2 && options_.version != 3) {
      refuse("GGUF version {} can't be written, only 2 and 3", options_.version);
    }
  }

  void set(std::string_view key, const MetadataValue& value) {
    if (key.starts_with("split.")) refuse("key '{}' is set by the writer alone", key);
    if (key == kAlignmentKey) {
      const auto* alignment = std::get_if<std::uint32_t>(&value);
      if (alignment == nullptr || !is_alignment(*alignment)) {
        refuse("{} must be a u32 that is a power of two of at least {}", kAlignmentKey,
               kMinAlignment);
      }
      alignment_ = *alignment;
    }
    std::vector<std::byte> bytes;
    append_entry(bytes, key, value);
    put(key, std::move(bytes));
  }

  void copy_metadata(const File& file) {
    for (const Value& value : file.metadata()) {
      if (value.key.starts_with("split.")) continue;
      if (value.key == kAlignmentKey) {
        set(value.key, static_cast<std::uint32_t>(file.alignment()));
        continue;
      }
      std::vector<std::byte> bytes;
      append_entry(bytes, value);
      put(value.key, std::move(bytes));
    }
  }

  void declare(std::string_view name, ElementType type, std::span<const std::uint64_t> shape) {
    check_open("tensor", name, kMaxTensorNameBytes);
    if (!names_.emplace(name).second) refuse("tensor '{}' is declared twice", name);
    if (shape.empty() || shape.size() > kMaxRank) {
      refuse("tensor '{}' has {} dimensions but must have 1 to {}", name, shape.size(), kMaxRank);
    }
    const bool has_zero = std::find(shape.begin(), shape.end(), 0) != shape.end();
    const std::optional<std::uint64_t> bytes = tensor_bytes(type, shape);
    if (has_zero || !bytes) {
      refuse("tensor '{}' has the shape {}, which no file can hold", name, shape_text(shape));
    }
    if (shape[0] % traits(type).block_length != 0) {
      refuse("tensor '{}' of type {} has rows of {} elements, not a multiple of {}", name,
             traits(type).name, shape[0], traits(type).block_length);
    }
    tensors_.push_back({std::string(name), type, {shape.begin(), shape.end()}, *bytes});
  }

  void write(std::string_view name, std::span<const std::byte> bytes) {
    begin();
    if (current_ == tensors_.size()) refuse("tensor '{}' comes after the last one", name);
    const Declared& tensor = tensors_[current_];
    if (name != tensor.name) {
      refuse("tensor '{}' comes where '{}' is to be written", name, tensor.name);
    }
    if (bytes.size() > tensor.bytes - written_) {
      refuse("tensor '{}' gets more than its {} bytes", name, tensor.bytes);
    }
    if (tensor.shard == shards_.size()) open_shard();
    shards_.back().write(bytes);
    written_ += bytes.size();
    if (written_ < tensor.bytes) return;
    pad();
    written_ = 0;
    ++current_;
  }

  void finish(const std::function<void(const std::filesystem::path&)>& check) {
    begin();
    if (current_ < tensors_.size()) {
      refuse("tensor '{}' is not complete: {} of {} bytes were written", tensors_[current_].name,
             written_, tensors_[current_].bytes);
    }
    if (finished_) refuse("the file is finished already");
    finished_ = true;
    for (OutputFile& shard : shards_) shard.close();
    if (check && shards_.size() == 1) check(shards_.front().part_path());
    // The first shard comes last: with it the model is complete.
    std::for_each(shards_.rbegin(), shards_.rend(), [](OutputFile& shard) { shard.commit(); });
  }

 private:
  template <typename... Arguments>
  [[noreturn]] void refuse(fmt::format_string<Arguments...> text, Arguments&&... arguments) const {
    fail(ErrorCode::invalid_argument, name_, text, std::forward<Arguments>(arguments)...);
  }

  void check_open(std::string_view what, std::string_view name, std::size_t max_bytes) const {
    if (begun_) refuse("{} '{}' comes after the first tensor's data", what, name);
    if (name.empty() || name.size() > max_bytes || !is_printable(name)) {
      refuse("the name of a {} must be 1 to {} bytes of printable UTF-8", what, max_bytes);
    }
  }

  void put(std::string_view key, std::vector<std::byte> bytes) {
    check_open("key", key, kMaxKeyBytes);
    const auto same = std::find_if(entries_.begin(), entries_.end(),
                                   [&](const Entry& e) { return e.key == key; });
    if (same != entries_.end()) {
      same->bytes = std::move(bytes);
    } else {
      entries_.push_back({std::string(key), std::move(bytes)});
    }
  }

  // Ends the declarations: gives each tensor its shard and offset, and opens the first shard.
  void begin() {
    if (begun_) return;
    begun_ = true;
    std::uint64_t offset = 0;
    for (Declared& tensor : tensors_) {
      const std::optional<std::uint64_t> end = checked_add(offset, tensor.bytes);
      const std::optional<std::uint64_t> next =
          end ? checked_align_up(*end, alignment_) : std::nullopt;
      if (!next) refuse("the tensors have more bytes than a file can hold");
      const std::uint64_t limit = options_.max_shard_bytes;
      const bool starts_shard = limit != 0 && offset != 0 && *end > limit;
      if (starts_shard) ++shard_count_;
      tensor.shard = shard_count_ - 1;
      tensor.offset = starts_shard ? 0 : offset;
      offset = starts_shard ? *next - offset : *next;
    }
    constexpr std::size_t kMaxShards = 65535;  // split.count is a u16
    if (shard_count_ > kMaxShards) {
      refuse("the tensors would need {} files, more than {}; allow more bytes in each",
             shard_count_, kMaxShards);
    }
    open_shard();
  }

  void open_shard() {
    if (!shards_.empty()) shards_.back().close();
    const std::size_t index = shards_.size();
    if (shard_count_ == 1) {
      shards_.emplace_back(path_);
    } else {
      std::filesystem::path prefix = path_;
      if (prefix.extension() == ".gguf") prefix.replace_extension();
      shards_.emplace_back(shard_path(prefix, index, shard_count_));
    }
    shards_.back().write(header(index));
    pad();
  }

  // The keys of a shard: all stand in the first, and what the reader needs in each.
  std::vector<Entry> shard_entries(std::size_t index) const {
    std::vector<Entry> entries;
    for (const Entry& entry : entries_) {
      if (index == 0 || entry.key == kAlignmentKey) entries.push_back(entry);
    }
    if (shard_count_ == 1) return entries;
    const auto add = [&](std::string_view key, const MetadataValue& value) {
      entries.push_back({std::string(key), {}});
      append_entry(entries.back().bytes, key, value);
    };
    add(kSplitNumberKey, static_cast<std::uint16_t>(index));
    add(kSplitCountKey, static_cast<std::uint16_t>(shard_count_));
    add(kSplitTensorsKey, static_cast<std::int32_t>(tensors_.size()));
    return entries;
  }

  std::vector<std::byte> header(std::size_t index) const {
    const std::vector<Entry> entries = shard_entries(index);
    const auto stands_here = [&](const Declared& tensor) { return tensor.shard == index; };
    std::vector<std::byte> out;
    for (const char letter : kMagic) append_number(out, letter);
    append_number(out, options_.version);
    append_number(out, static_cast<std::uint64_t>(
                           std::count_if(tensors_.begin(), tensors_.end(), stands_here)));
    append_number(out, std::uint64_t{entries.size()});
    for (const Entry& entry : entries)
      out.insert(out.end(), entry.bytes.begin(), entry.bytes.end());
    for (const Declared& tensor : tensors_) {
      if (!stands_here(tensor)) continue;
      append_string(out, tensor.name);
      append_number(out, static_cast<std::uint32_t>(tensor.shape.size()));
      for (const std::uint64_t dimension : tensor.shape) append_number(out, dimension);
      append_number(out, static_cast<std::uint32_t>(tensor.type));
      append_number(out, tensor.offset);
    }
    return out;
  }

  // Fills the current shard with zeros up to the alignment.
  void pad() {
    OutputFile& shard = shards_.back();
    constexpr std::array<std::byte, 4096> kZeros{};
    std::uint64_t missing = (alignment_ - shard.written() % alignment_) % alignment_;
    while (missing > 0) {
      const std::uint64_t piece = std::min<std::uint64_t>(missing, kZeros.size());
      shard.write(std::span(kZeros).first(piece));
      missing -= piece;
    }
  }

  std::filesystem::path path_;
  std::string name_;  // for messages
  WriterOptions options_;
  std::uint64_t alignment_ = kDefaultAlignment;
  std::vector<Entry> entries_;
  std::vector<Declared> tensors_;
  std::set<std::string, std::less<>> names_;
  std::size_t shard_count_ = 1;
  std::vector<OutputFile> shards_;  // those begun; the last is being written
  std::size_t current_ = 0;         // the tensor that is being written
  std::uint64_t written_ = 0;       // bytes of it so far
  bool begun_ = false;
  bool finished_ = false;
};

Writer::Writer(std::filesystem::path path, WriterOptions options)
    : impl_(std::make_unique<Impl>(std::move(path), options)) {}
Writer::Writer(Writer&&) noexcept = default;
Writer::~Writer() = default;

void Writer::set(std::string_view key, const MetadataValue& value) { impl_->set(key, value); }
void Writer::copy_metadata(const File& file) { impl_->copy_metadata(file); }
void Writer::declare(std::string_view name, ElementType type,
                     std::span<const std::uint64_t> shape) {
  impl_->declare(name, type, shape);
}
void Writer::write(std::string_view name, std::span<const std::byte> bytes) {
  impl_->write(name, bytes);
}
void Writer::finish(const std::function<void(const std::filesystem::path&)>& check) {
  impl_->finish(check);
}

}  // namespace edgerunner::gguf
