// Templates that want to hang, to fill memory or to overflow the stack end with an error.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "chat/jinja/template.h"
#include "edgerunner/error.h"

namespace edgerunner::jinja {
namespace {

using ::testing::HasSubstr;

constexpr Limits kSmall = {.steps = 200'000, .bytes = std::size_t{8} << 20};
constexpr std::size_t kLarge = std::size_t{1} << 17;  // a megabyte fares alike, and takes longer

std::string repeat(const std::string& text, std::size_t bytes) {
  std::string result;
  while (result.size() < bytes) result += text;
  return result;
}

std::string error_of(const std::string& source) {
  try {
    return "no error: " + Template(source, kSmall).render({{"s", "text"}}, {}).substr(0, 100);
  } catch (const Error& error) {
    return error.what();
  }
}

TEST(JinjaErrors, NameLineAndColumn) {
  EXPECT_THAT(error_of("a\n{{ 1 + }}"), HasSubstr("line 2, column 8"));
  EXPECT_THAT(error_of("ä {{ s.x.y }}"), HasSubstr("line 1, column 9"));
  EXPECT_THAT(error_of("{% if s %}"), HasSubstr("endif"));
  EXPECT_THAT(error_of("\n\n{% nosuch %}"), HasSubstr("line 3, column 4"));
  EXPECT_THAT(error_of("{{ s|nosuch }}"), HasSubstr("no filter 'nosuch'"));
}

TEST(JinjaErrors, TellWhatOnlyWeDoNotSupport) {
  EXPECT_THAT(error_of("{{ 99999999999999999999 }}"), HasSubstr("not supported"));
  EXPECT_THAT(error_of("{% include 'x' %}"), HasSubstr("not supported"));
  EXPECT_THAT(error_of("{{ [1]|random }}"), HasSubstr("not supported"));
}

TEST(JinjaErrors, PassOnWhatTheTemplateRaises) {
  EXPECT_EQ(error_of("{{ raise_exception('roles must alternate') }}"), "roles must alternate");
}

TEST(JinjaSandbox, EndsLoopsWithoutEnd) {
  EXPECT_THAT(
      error_of("{% for a in range(9999) %}{% for b in range(9999) %}{% endfor %}{% endfor %}"),
      HasSubstr("steps"));
  EXPECT_THAT(error_of("{{ range(100001)|list }}"), HasSubstr("limit"));
  EXPECT_THAT(error_of("{% for x in range(99999) %}{{ s[0] }}{{ s * 99 }}{% endfor %}"),
              HasSubstr("takes more than"));
}

TEST(JinjaSandbox, EndsRecursionWithoutEnd) {
  EXPECT_THAT(error_of("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}"),
              HasSubstr("without end"));
  EXPECT_THAT(
      error_of("{% macro m() %}{% call m() %}{% endcall %}{{ caller() }}{% endmacro %}{{ m() }}"),
      HasSubstr("without end"));
  EXPECT_THAT(error_of("{% for x in [1] recursive %}{{ loop([1]) }}{% endfor %}"),
              HasSubstr("without end"));
  EXPECT_THAT(error_of("{% block b %}{{ self.b() }}{% endblock %}"), HasSubstr("without end"));
}

TEST(JinjaSandbox, CapsMemory) {
  EXPECT_THAT(error_of("{{ 'x' * 9999999999 }}"), HasSubstr("MB"));
  EXPECT_THAT(error_of("{% set n = namespace(s='x') %}{% for i in range(99) %}"
                       "{% set n.s = n.s + n.s %}{% endfor %}"),
              HasSubstr("MB"));
  EXPECT_THAT(error_of("{{ '%999999999d' % 1 }}"), HasSubstr("takes more than"));
  EXPECT_THAT(error_of("{{ ([s * 9999] * 9999) | join }}"), HasSubstr("takes more than"));
  EXPECT_THAT(error_of("{{ s|indent(999999999, true) }}"), HasSubstr("takes more than"));
  EXPECT_THAT(error_of("{{ strftime_now('%999999999d') }}"), HasSubstr("too long"));
}

TEST(JinjaSandbox, PrintsNoValueThatHoldsItself) {
  EXPECT_THAT(error_of("{% set n = namespace() %}{% set n.n = n %}{{ n }}"), HasSubstr("nested"));
  EXPECT_THAT(error_of("{% set n = namespace(l=[]) %}{% for i in range(2000) %}"
                       "{% set n.l = [n.l] %}{% endfor %}{{ n.l|tojson }}"),
              HasSubstr("nested"));
  EXPECT_THAT(error_of("{% set n = namespace(l=[1]) %}{% for i in range(60) %}"
                       "{% set n.l = [n.l, n.l] %}{% endfor %}{{ n.l }}"),
              HasSubstr("takes more than"));
}

TEST(JinjaSandbox, HidesWhatPythonWouldLetOut) {
  EXPECT_EQ(error_of("{{ s.__class__ }}"), "no error: ");
  EXPECT_THAT(error_of("{{ s.__class__.__mro__ }}"), HasSubstr("not to be had"));
  EXPECT_THAT(error_of("{{ [].append(1) }}"), HasSubstr("not to be had"));
}

class LargeTemplate : public ::testing::TestWithParam<const char*> {};

TEST_P(LargeTemplate, EndsWithoutACrash) {
  const std::string text = repeat(GetParam(), kLarge);
  for (const std::string& source :
       {text, "{{ " + text, "{{ " + text + " }}", "{% set x = " + text + " %}", "{% if " + text}) {
    EXPECT_NE(error_of(source), "");
  }
}

INSTANTIATE_TEST_SUITE_P(JinjaSandbox, LargeTemplate,
                         ::testing::Values("(", "[", "{", "{{", "{%", "{% if s %}",
                                           "{% for x in s %}", "not ", "-", "s.a", "s|e", "a+",
                                           "a if b else ", "[[],", "{'a':", "f(", "a[0]", "a and ",
                                           "{% macro m() %}", "{# ", "{% raw %}", "'", "a~", "1<",
                                           "x is ", "a(", "*", "{% elif x %}", "{{ s }}"));

}  // namespace
}  // namespace edgerunner::jinja
