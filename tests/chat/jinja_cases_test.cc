// What Jinja2 itself renders: real templates from shared/, and constructs frozen by
// jinja2_cases.py.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "chat/jinja/template.h"
#include "edgerunner/error.h"
#include "support/shared_data.h"

namespace edgerunner::jinja {
namespace {

using Json = nlohmann::ordered_json;

constexpr LocalTime kNow = {
    .year = 2026, .month = 1, .day = 2, .hour = 3, .minute = 4, .second = 5};

std::string read_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void check(const std::string& source, const Json& context, const Json& wanted) {
  SCOPED_TRACE(source.size() > 200 ? source.substr(0, 200) : source);
  try {
    const std::string text = Template(source).render(context, kNow);
    if (wanted.contains("expected")) {
      EXPECT_EQ(text, wanted["expected"].get<std::string>());
    } else {
      ADD_FAILURE() << "rendered, where Jinja2 raises " << wanted["error"] << ": " << text;
    }
  } catch (const Error& error) {
    if (wanted.contains("expected")) {
      // What only we refuse says so.
      EXPECT_EQ(error.code(), ErrorCode::unsupported) << error.what();
    } else if (wanted.value("error_type", "") == "TemplateError") {
      EXPECT_NE(std::string(error.what()).find(wanted["error"].get<std::string>()),
                std::string::npos)
          << error.what();
    }
  }
}

TEST(JinjaCases, RealTemplatesRenderAsJinja2RendersThem) {
  EDGERUNNER_REQUIRE_SHARED_DATA();
  const std::filesystem::path folder = test::shared_dir() / "chat-templates";
  const Json document = Json::parse(read_file(folder / "cases.json"));
  std::map<std::string, std::string> sources;
  for (const Json& sample : document["cases"]) {
    const auto name = sample["template"].get<std::string>();
    SCOPED_TRACE(name + " " + sample["name"].get<std::string>());
    if (!sources.contains(name)) sources[name] = read_file(folder / (name + ".jinja"));
    check(sources[name], sample["context"], sample);
  }
}

TEST(JinjaCases, ConstructsRenderAsJinja2RendersThem) {
  const Json document = Json::parse(
      read_file(std::filesystem::path(EDGERUNNER_TESTS_DIR) / "chat/jinja2_cases.json"));
  for (const Json& sample : document["cases"]) {
    check(sample["template"].get<std::string>(), document["context"], sample);
  }
}

}  // namespace
}  // namespace edgerunner::jinja
