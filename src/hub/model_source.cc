#include "hub/model_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/environment.h"
#include "edgerunner/error.h"
#include "gguf/split.h"
#include "hub/known_models.h"
#include "hub/sha256.h"

namespace edgerunner::hub {
namespace {

constexpr std::string_view kHub = "hf:";
constexpr std::string_view kExtension = ".gguf";

[[noreturn]] void refuse(std::string_view name, std::string_view why) {
  throw Error(ErrorCode::invalid_argument, fmt::format("'{}' {}", name, why));
}

std::string endpoint() {
  std::string url = environment("HF_ENDPOINT").value_or("https://huggingface.co");
  while (url.ends_with('/')) url.pop_back();
  return url;
}

std::vector<std::string_view> parts_of(std::string_view path) {
  std::vector<std::string_view> parts;
  while (true) {
    const std::size_t slash = path.find('/');
    parts.push_back(path.substr(0, slash));
    if (slash == std::string_view::npos) return parts;
    path.remove_prefix(slash + 1);
  }
}

// Whether a part of a path may be the name of a folder or file of ours.
bool is_plain(std::string_view part) {
  return !part.empty() && part != "." && part != ".." &&
         std::none_of(part.begin(), part.end(),
                      [](unsigned char c) { return c < 0x20 || c == 0x7f || c == '\\'; });
}

// Percent-encoding of what a path of an URL can't hold as it is.
std::string encoded(std::string_view text) {
  std::string url;
  for (const unsigned char c : text) {
    const bool plain = c > 0x20 && c < 0x7f &&
                       std::string_view("\"#%<>?[]^`{|}").find(char(c)) == std::string_view::npos;
    url += plain ? std::string(1, char(c)) : fmt::format("%{:02X}", c);
  }
  return url;
}

ModelSource on_hub(std::string_view name, std::string_view path) {
  const std::vector<std::string_view> parts = parts_of(path);
  if (parts.size() < 3 || !path.ends_with(kExtension) ||
      !std::all_of(parts.begin(), parts.end(), is_plain)) {
    refuse(
        name,
        fmt::format("doesn't name a file; write hf:OWNER/REPO/FILE.gguf (the files of a repository "
                    "are listed at {}/OWNER/REPO/tree/main)",
                    endpoint()));
  }
  const std::size_t at = parts[1].find('@');
  const std::string_view repository = parts[1].substr(0, at);
  const std::string_view revision = at == std::string_view::npos ? "main" : parts[1].substr(at + 1);
  if (repository.empty() || revision.empty()) refuse(name, "has an empty repository or revision");
  const std::string_view file = path.substr(parts[0].size() + parts[1].size() + 2);

  ModelSource source;
  source.hub = true;
  source.url = fmt::format("{}/{}/{}/resolve/{}/{}", endpoint(), encoded(parts[0]),
                           encoded(repository), encoded(revision), encoded(file));
  source.file = std::filesystem::path("hf") / path;
  return source;
}

// The hf: name of a file of the hub, of which `path` is what follows the endpoint:
// OWNER/REPO/resolve/REVISION/FILE, or blob in place of resolve, as its pages have it.
std::optional<std::string> path_on_hub(std::string_view path) {
  const std::vector<std::string_view> parts = parts_of(path);
  if (parts.size() < 5 || (parts[2] != "resolve" && parts[2] != "blob")) return std::nullopt;
  const std::size_t file =
      parts[0].size() + parts[1].size() + parts[2].size() + parts[3].size() + 4;
  const std::string revision = parts[3] == "main" ? "" : fmt::format("@{}", parts[3]);
  return fmt::format("{}/{}{}/{}", parts[0], parts[1], revision, path.substr(file));
}

ModelSource at_url(std::string_view name) {
  std::string_view address = name.substr(0, name.find('#'));
  std::string_view query;
  if (const std::size_t mark = address.find('?'); mark != std::string_view::npos) {
    query = address.substr(mark + 1);
    address = address.substr(0, mark);
  }
  if (query == "download=true") query = {};  // the hub's own, which changes nothing
  if (const std::string hub = endpoint() + "/"; query.empty() && address.starts_with(hub)) {
    if (const auto path = path_on_hub(address.substr(hub.size()))) return on_hub(name, *path);
  }

  ModelSource source;
  source.url = std::string(name.substr(0, name.find('#')));
  std::string_view rest = address.substr(address.find("//") + 2);
  // A password belongs to nobody's file names.
  if (const std::size_t at = rest.substr(0, rest.find('/')).rfind('@');
      at != std::string_view::npos) {
    rest.remove_prefix(at + 1);
  }
  std::vector<std::string_view> parts = parts_of(rest);
  std::erase(parts, "");
  if (parts.size() < 2 || !std::all_of(parts.begin(), parts.end(), is_plain)) {
    refuse(name, "doesn't name a file; give the URL of a .gguf file");
  }
  source.file = "url";
  for (const std::string_view part : std::span(parts).first(parts.size() - 1)) source.file /= part;
  if (!query.empty()) source.file /= sha256_of(query).substr(0, 12);
  source.file /= parts.back();
  if (!parts.back().ends_with(kExtension)) source.file += kExtension;
  return source;
}

// Which of how many: 2 and 3 of "NAME-00002-of-00003.gguf".
struct ShardNumber {
  std::size_t index = 0;
  std::size_t count = 0;
};

std::optional<ShardNumber> shard_number(std::string_view file) {
  constexpr std::string_view kPattern = "-00000-of-00000.gguf";
  if (file.size() <= kPattern.size()) return std::nullopt;
  const std::string_view end = file.substr(file.size() - kPattern.size());
  ShardNumber number;
  std::from_chars(end.data() + 1, end.data() + 6, number.index);
  std::from_chars(end.data() + 10, end.data() + 15, number.count);
  if (number.index < 1 || number.index > number.count ||
      end != gguf::shard_path("", number.index - 1, number.count).string()) {
    return std::nullopt;
  }
  return number;
}

}  // namespace

std::optional<ModelSource> find_source(std::string_view name) {
  if (const KnownModel* known = find_known_model(name)) {
    ModelSource source = on_hub(known->source, known->source.substr(kHub.size()));
    source.sha256 = known->sha256;
    return source;
  }
  if (name.starts_with(kHub)) return on_hub(name, name.substr(kHub.size()));
  if (name.starts_with("https://") || name.starts_with("http://")) return at_url(name);
  return std::nullopt;
}

std::vector<ModelSource> shards_of(const ModelSource& source) {
  const std::string file = source.file.string();
  const auto number = shard_number(file);
  if (!number) return {source};
  const std::string own = gguf::shard_path("", number->index - 1, number->count).string();
  const std::size_t in_url = source.url.substr(0, source.url.find('?')).rfind(own);
  if (in_url == std::string::npos) return {source};

  std::vector<ModelSource> shards(number->count, source);
  for (std::size_t i = 0; i < shards.size(); ++i) {
    if (i + 1 == number->index) continue;
    const std::string other = gguf::shard_path("", i, number->count).string();
    shards[i].url.replace(in_url, own.size(), other);
    shards[i].file = file.substr(0, file.size() - own.size()) + other;
    shards[i].sha256.clear();
  }
  return shards;
}

std::string name_of_file(const std::filesystem::path& file) {
  std::string path = file.generic_string();
  if (!path.starts_with("hf/")) return path;
  std::string name = std::string(kHub) + path.substr(3);
  for (const KnownModel& known : known_models()) {
    if (known.source == name) return std::string(known.name);
  }
  return name;
}

}  // namespace edgerunner::hub
