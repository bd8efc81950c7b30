#include <algorithm>
#include <cmath>
#include <cstring>
#include <numbers>

#include "backend/cpu/forward_pass.h"

// The attention part of the forward pass: what stands between the q, k, v products and o's.

namespace edgerunner::cpu {

namespace {

// Scores are in units of log2, so that the weights are powers of two.
float in_log2(float natural) {
  return static_cast<float>(static_cast<double>(natural) * std::numbers::log2e_v<double>);
}

}  // namespace

void ForwardPass::store(std::size_t layer) {
  const auto stores = context_.plan.stores();
  const std::uint32_t kv_heads = spec_.layers[layer].kv_heads;
  worker_.for_each(static_cast<std::uint32_t>(stores.size()) * kv_heads, [&](std::uint32_t unit) {
    store_unit(layer, stores[unit / kv_heads], unit % kv_heads);
  });
  lap(Operation::rope_and_cache);
}

void ForwardPass::store_unit(std::size_t layer, const PlanStore& to, std::uint32_t kv_head) {
  const LayerSpec& shape = spec_.layers[layer];
  const Vector& norm = weights_.layers[layer].attention.k_norm;
  const KvHeadLayout& layout = context_.cache.layout(layer);
  const std::size_t stride = std::size_t{shape.kv_heads} * shape.head_dim;
  const std::size_t at = to.row * stride + std::size_t{kv_head} * shape.head_dim;
  for (std::uint32_t t = 0; t < to.tokens; ++t) {
    const float* key = space_.k + at + t * stride;
    if (norm.size() == shape.head_dim) {
      vectors_.rms_norm(key, norm.data(), shape.head_dim, spec_.norm_epsilon, own_.head);
      key = own_.head;
    }
    vectors_.rotate(key, context_.ropes.rotation(shape.rope, to.position + t), shape.head_dim, 1.0F,
                    own_.keys + std::size_t{t} * shape.head_dim);
  }
  std::byte* block = context_.cache.block(layer, kv_head, to.page);
  const std::uint32_t first = to.position % kPageTokens;
  vectors_.store_keys(own_.keys, shape.head_dim, to.tokens, first, layout, block, own_.attention);
  vectors_.store_values(space_.v + at, stride, to.tokens, first, layout, block);
}

void ForwardPass::attend(std::size_t layer, const Preparation& next) {
  if (rows_->splits_apart) {
    attend_splits(layer, next);
  } else {
    attend_tiles(layer, next);
  }
}

AttentionTile ForwardPass::tile(std::size_t layer, std::uint32_t kv_head,
                                const PlanTile& place) const {
  const LayerSpec& shape = spec_.layers[layer];
  AttentionTile result;
  result.queries = own_.queries;
  result.position = place.position;
  result.tokens = place.tokens;
  result.heads = shape.heads / shape.kv_heads;
  result.window = shape.sliding_window;
  result.cap = in_log2(shape.attention_cap);
  result.cache = context_.cache.block(layer, kv_head, 0);
  result.page_stride = context_.cache.page_stride();
  result.pages = place.pages;
  result.layout = context_.cache.layout(layer);
  return result;
}

void ForwardPass::gather_queries(std::size_t layer, const PlanTile& place, std::uint32_t kv_head) {
  const LayerSpec& shape = spec_.layers[layer];
  const Vector& norm = weights_.layers[layer].attention.q_norm;
  const std::uint32_t heads = shape.heads / shape.kv_heads;
  const std::size_t stride = std::size_t{shape.heads} * shape.head_dim;
  const float scale = in_log2(shape.attention_scale);
  float* out = own_.queries;
  for (std::uint32_t t = 0; t < place.tokens; ++t) {
    const Rotation rotation = context_.ropes.rotation(shape.rope, place.position + t);
    for (std::uint32_t h = 0; h < heads; ++h, out += shape.head_dim) {
      const float* query =
          space_.q + (place.row + t) * stride + (std::size_t{kv_head} * heads + h) * shape.head_dim;
      if (norm.size() == shape.head_dim) {
        vectors_.rms_norm(query, norm.data(), shape.head_dim, spec_.norm_epsilon, own_.head);
        query = own_.head;
      }
      vectors_.rotate(query, rotation, shape.head_dim, scale, out);
    }
  }
}

void ForwardPass::finish(std::size_t layer, const PlanTile& place, std::uint32_t kv_head,
                         const float* records) {
  const LayerSpec& shape = spec_.layers[layer];
  const std::uint32_t heads = shape.heads / shape.kv_heads;
  const std::size_t stride = std::size_t{shape.heads} * shape.head_dim;
  const std::uint32_t record = attention_record_floats(shape.head_dim);
  for (std::uint32_t t = 0; t < place.tokens; ++t) {
    for (std::uint32_t h = 0; h < heads; ++h, records += record) {
      vectors_.finish(records, shape.head_dim,
                      space_.q + (place.row + t) * stride +
                          (std::size_t{kv_head} * heads + h) * shape.head_dim);
    }
  }
}

void ForwardPass::attend_tiles(std::size_t layer, const Preparation& next) {
  const LayerSpec& shape = spec_.layers[layer];
  const auto tiles = static_cast<std::uint32_t>(rows_->tiles.size());
  const bool stores = stores_as_it_attends();
  loop_then_read(tiles * shape.kv_heads, Operation::attention, next, [&](std::uint32_t unit) {
    // The last tiles see the most: they go first, so that the threads end together.
    const std::uint32_t index = tiles - 1 - unit / shape.kv_heads;
    const PlanTile& place = rows_->tiles[index];
    const std::uint32_t kv_head = unit % shape.kv_heads;
    if (stores) store_unit(layer, context_.plan.stores()[index], kv_head);
    gather_queries(layer, place, kv_head);
    const AttentionTile work = tile(layer, kv_head, place);
    const std::uint32_t first = work.first_split();
    vectors_.attend(work, first, own_.records[0], own_.attention);
    for (std::uint32_t split = first + 1; split < work.end_split(); ++split) {
      vectors_.attend(work, split, own_.records[1], own_.attention);
      vectors_.merge(own_.records[0], own_.records[1], work.rows(), shape.head_dim);
    }
    finish(layer, place, kv_head, own_.records[0]);
  });
}

void ForwardPass::attend_splits(std::size_t layer, const Preparation& next) {
  const LayerSpec& shape = spec_.layers[layer];
  const std::uint32_t heads = shape.heads / shape.kv_heads;
  const std::size_t record = attention_record_floats(shape.head_dim);
  // Records of (tile, split, KV head), [tokens, heads]; a layer with a window leaves some unused.
  const auto records_of = [&](const PlanTile& place, std::uint32_t split, std::uint32_t kv_head) {
    const std::size_t token =
        place.first_record + std::size_t{split - place.first_split} * place.tokens;
    return space_.records +
           (token * shape.heads + std::size_t{kv_head} * place.tokens * heads) * record;
  };
  const auto splits = static_cast<std::uint32_t>(rows_->splits.size());
  const bool stores = stores_as_it_attends();
  worker_.for_each(splits * shape.kv_heads, [&](std::uint32_t unit) {
    const PlanSplit& part = rows_->splits[unit / shape.kv_heads];
    const PlanTile& place = rows_->tiles[part.tile];
    const std::uint32_t kv_head = unit % shape.kv_heads;
    AttentionTile work = tile(layer, kv_head, place);
    if (part.split < work.first_split()) return;
    if (kv_head + 1 < shape.kv_heads) {
      const std::uint32_t page = std::max(part.split * kSplitPages, work.first_page());
      work.next = context_.cache.block(layer, kv_head + 1, place.pages[page]);
    }
    if (stores && part.split + 1 == work.end_split()) {
      store_unit(layer, context_.plan.stores()[part.tile], kv_head);
    }
    gather_queries(layer, place, kv_head);
    vectors_.attend(work, part.split, records_of(place, part.split, kv_head), own_.attention);
  });
  const auto tiles = static_cast<std::uint32_t>(rows_->tiles.size());
  loop_then_read(tiles * shape.kv_heads, Operation::attention, next, [&](std::uint32_t unit) {
    const PlanTile& place = rows_->tiles[unit / shape.kv_heads];
    const std::uint32_t kv_head = unit % shape.kv_heads;
    const AttentionTile work = tile(layer, kv_head, place);
    float* total = records_of(place, work.first_split(), kv_head);
    for (std::uint32_t split = work.first_split() + 1; split < work.end_split(); ++split) {
      vectors_.merge(total, records_of(place, split, kv_head), work.rows(), shape.head_dim);
    }
    finish(layer, place, kv_head, total);
  });
}

}  // namespace edgerunner::cpu
