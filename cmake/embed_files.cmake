# cmake -D FILES="a;b" -D OUT=web_files.cc -P embed_files.cmake: files as arrays in a C++ source, for
# src/server/web_files.h.
set(arrays "")
set(entries "")
foreach(path IN LISTS FILES)
  get_filename_component(name ${path} NAME)
  string(MAKE_C_IDENTIFIER "k_${name}" identifier)
  file(READ ${path} bytes HEX)
  string(REGEX REPLACE "(..)" "'\\\\x\\1'," bytes "${bytes}")
  string(APPEND arrays "constexpr char ${identifier}[] = {${bytes}};\n")
  string(APPEND entries
         "    {\"${name}\", std::string_view(${identifier}, sizeof ${identifier})},\n")
endforeach()
file(WRITE ${OUT} "#include \"server/web_files.h\"

namespace edgerunner::server {
namespace {
${arrays}
constexpr WebFile kFiles[] = {
${entries}};
}  // namespace

std::span<const WebFile> web_files() { return kFiles; }

}  // namespace edgerunner::server
")
