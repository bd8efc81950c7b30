// Answers one question by the model's chat template:  chat MODEL.gguf "Who are you?"
#include <edgerunner/chat.h>
#include <edgerunner/error.h>

#include <iostream>
#include <nlohmann/json.hpp>

int main(int argc, char** argv) {
  if (argc != 3) {
    std::cerr << "usage: chat MODEL.gguf QUESTION\n";
    return 2;
  }
  try {
    edgerunner::Model model = edgerunner::Model::load(argv[1]);
    const edgerunner::Chat chat(model);
    nlohmann::json messages = {{{"role", "user"}, {"content", argv[2]}}};

    edgerunner::GenerateOptions options;
    options.max_tokens = 128;
    edgerunner::ChatReply reply = chat.reply(messages.dump(), options);
    while (const auto piece = reply.next()) {
      if (!piece->reasoning) std::cout << piece->text << std::flush;
    }
    std::cout << "\n[" << reply.summary().generated_tokens << " tokens]\n";
  } catch (const edgerunner::Error& error) {
    std::cerr << error.what() << "\n";
    return 1;
  }
  return 0;
}
