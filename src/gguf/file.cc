#include "gguf/file.h"

#include <iterator>
#include <utility>

#include "base/mapped_file.h"
#include "base/memory.h"
#include "gguf/fail.h"
#include "gguf/name_index.h"
#include "gguf/parse.h"
#include "gguf/split.h"
#include "gguf/typed.h"

namespace edgerunner::gguf {

struct File::State {
  std::string name;
  std::vector<MappedFile> mappings;  // empty for a view
  std::uint32_t version = 0;
  std::uint64_t alignment = 0;
  std::size_t shard_count = 0;
  std::uint64_t bytes = 0;
  std::vector<Value> metadata;
  std::vector<Tensor> tensors;
  NameIndex<Value> keys;
  NameIndex<Tensor> tensor_names;

  // Takes over one shard more.
  void add(Shard&& shard, std::uint64_t shard_bytes) {
    if (shard_count == 0) {
      version = shard.version;
      alignment = shard.alignment;
      metadata = std::move(shard.metadata);
      keys = NameIndex<Value>(metadata);
    }
    tensors.insert(tensors.end(), shard.tensors.begin(), shard.tensors.end());
    bytes += shard_bytes;
    ++shard_count;
  }

  // To be called once all shards are there.
  void index_tensors() {
    tensor_names = NameIndex<Tensor>(tensors);
    if (const Tensor* twice = tensor_names.duplicate(tensors)) {
      fail(ErrorCode::invalid_file, name,
           "tensor '{}' occurs twice; the file was written wrongly, so convert it again",
           twice->name);
    }
  }
};

namespace {

// Which part of a model a file is, by its own metadata.
struct SplitPlace {
  std::uint64_t index = 0;
  std::uint64_t count = 1;
  std::optional<std::uint64_t> tensors;  // of all parts
};

SplitPlace split_place(std::string_view file, const Shard& shard) {
  SplitPlace place;
  std::optional<std::uint64_t> index;
  for (const Value& value : shard.metadata) {
    if (value.key == kSplitNumberKey) index = to_uint(file, value);
    if (value.key == kSplitCountKey) place.count = to_uint(file, value);
    if (value.key == kSplitTensorsKey) place.tensors = to_uint(file, value);
  }
  if (place.count <= 1) return {};
  constexpr std::uint64_t kMaxShards = 99999;  // the file name has five digits
  if (!index || *index >= place.count || place.count > kMaxShards) {
    fail(ErrorCode::invalid_file, file,
         "split.no is {} and split.count {}, which name no part of a model; the file was written "
         "wrongly, so split the model again",
         index ? fmt::format("{}", *index) : "absent", place.count);
  }
  place.index = *index;
  return place;
}

MappedFile map_shard(const std::filesystem::path& path, const SplitPlace& place) {
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) {
    throw Error(ErrorCode::io, fmt::format("'{}' is missing: the model is split into {} files that "
                                           "must stand in one folder; fetch this one too",
                                           path.string(), place.count));
  }
  return MappedFile(path);
}

void check_sibling(std::string_view file, const Shard& shard, std::size_t index,
                   const SplitPlace& place) {
  const SplitPlace found = split_place(file, shard);
  if (found.index == index && found.count == place.count) return;
  fail(ErrorCode::invalid_file, file,
       "the file's name says part {} of {} but its metadata says part {} of {}; fetch the parts of "
       "one model again",
       index + 1, place.count, found.index + 1, found.count);
}

}  // namespace

File::File(std::unique_ptr<State> state) : state_(std::move(state)) {}
File::File(File&&) noexcept = default;
File& File::operator=(File&&) noexcept = default;
File::~File() = default;

File File::open(const std::filesystem::path& path) {
  auto state = std::make_unique<State>();
  state->name = path.string();
  MappedFile mapping(path);
  Shard opened = parse_shard(mapping.bytes(), state->name);
  const SplitPlace place = split_place(state->name, opened);
  if (place.count == 1) {
    state->add(std::move(opened), mapping.bytes().size());
    state->mappings.push_back(std::move(mapping));
    state->index_tensors();
    return File(std::move(state));
  }

  const std::optional<std::filesystem::path> prefix = shard_prefix(path, place.index, place.count);
  if (!prefix) {
    fail(ErrorCode::invalid_file, state->name,
         "the file is part {} of {} of a split model, so its name must end in '{}'; give it back "
         "that name, and the other parts theirs",
         place.index + 1, place.count, shard_path("", place.index, place.count).string());
  }
  state->name = shard_path(*prefix, 0, place.count).string();
  for (std::size_t i = 0; i < place.count; ++i) {  // the opened part again, in its place
    const std::filesystem::path sibling = shard_path(*prefix, i, place.count);
    const std::string sibling_name = sibling.string();
    MappedFile sibling_mapping = map_shard(sibling, place);
    Shard shard = parse_shard(sibling_mapping.bytes(), sibling_name);
    check_sibling(sibling_name, shard, i, place);
    state->add(std::move(shard), sibling_mapping.bytes().size());
    state->mappings.push_back(std::move(sibling_mapping));
  }
  state->index_tensors();
  if (place.tensors && *place.tensors != state->tensors.size()) {
    fail(ErrorCode::invalid_file, state->name,
         "split.tensors.count is {} but the {} parts hold {} tensors; fetch the parts of one model "
         "again",
         *place.tensors, place.count, state->tensors.size());
  }
  return File(std::move(state));
}

File File::view(std::span<const std::byte> bytes, std::string name) {
  auto state = std::make_unique<State>();
  state->name = std::move(name);
  Shard shard = parse_shard(bytes, state->name);
  if (const SplitPlace place = split_place(state->name, shard); place.count != 1) {
    fail(ErrorCode::unsupported, state->name,
         "the bytes are part {} of {} of a split model; open it by its path instead",
         place.index + 1, place.count);
  }
  state->add(std::move(shard), bytes.size());
  state->index_tensors();
  return File(std::move(state));
}

const std::string& File::name() const { return state_->name; }
std::uint32_t File::version() const { return state_->version; }
std::uint64_t File::alignment() const { return state_->alignment; }
std::size_t File::shard_count() const { return state_->shard_count; }
std::uint64_t File::bytes() const { return state_->bytes; }
std::span<const Value> File::metadata() const { return state_->metadata; }
std::span<const Tensor> File::tensors() const { return state_->tensors; }

const Value* File::find(std::string_view key) const {
  return state_->keys.find(state_->metadata, key);
}

const Tensor* File::find_tensor(std::string_view tensor_name) const {
  return state_->tensor_names.find(state_->tensors, tensor_name);
}

void File::will_need() const {
  for (const MappedFile& mapping : state_->mappings) mapping.will_need();
}

void File::will_read_often(const std::function<void(double)>& on_progress) const {
  if (available_memory().value_or(0) < bytes()) return will_need();
  for (const MappedFile& mapping : state_->mappings) {
    const auto begin = static_cast<double>(&mapping - state_->mappings.data());
    const auto count = static_cast<double>(state_->mappings.size());
    mapping.will_read_often([&](double fraction) {
      if (on_progress) on_progress((begin + fraction) / count);
    });
  }
}

void File::dont_need() const {
  for (const MappedFile& mapping : state_->mappings) mapping.dont_need();
}

}  // namespace edgerunner::gguf
