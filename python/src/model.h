#pragma once

#include <nanobind/nanobind.h>

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "arrays.h"
#include "edgerunner/chat.h"
#include "edgerunner/embedding.h"
#include "edgerunner/model.h"
#include "running.h"

namespace edgerunner::python {

// A model as Python holds it. Each call keeps what it works on alive, so that another thread may
// close the model meanwhile: what runs is then cancelled. The GIL is released while computing.
class PythonModel {
 public:
  // `progress` is a callable or None.
  PythonModel(const std::string& path, ModelOptions options, nanobind::object progress);

  nanobind::dict info() const;
  std::vector<TokenId> tokenize(std::string_view text, bool add_special, bool parse_special) const;
  nanobind::bytes detokenize(const std::vector<TokenId>& ids, bool special) const;
  std::unique_ptr<Running<Generation>> generate(std::string_view prompt,
                                                const GenerateOptions& options) const;
  std::unique_ptr<Running<Generation>> generate_ids(const std::vector<TokenId>& prompt,
                                                    const GenerateOptions& options) const;
  std::unique_ptr<Running<ChatReply>> chat(const std::string& messages, const std::string& tools,
                                           const std::string& variables,
                                           const GenerateOptions& options) const;
  std::string render_chat(const std::string& messages, const std::string& tools,
                          const std::string& variables) const;
  Array logits(const std::vector<TokenId>& ids) const;
  Array embed(std::string_view text, const std::string& pooling) const;
  Array embed_ids(const std::vector<TokenId>& ids, const std::string& pooling) const;
  void cancel_all() const;
  void trim_memory() const;
  void close();

 private:
  struct Loaded {
    explicit Loaded(Model loaded) : model(std::move(loaded)) {}
    const Chat& chat();  // compiled when it is first asked for

    Model model;

   private:
    std::once_flag chat_made_;
    std::optional<Chat> chat_;
  };

  std::shared_ptr<Loaded> loaded() const;  // throws ValueError where it has been closed

  std::shared_ptr<Loaded> loaded_;  // null: closed; guarded by the GIL
};

}  // namespace edgerunner::python
