# Flags common to every target of the project. Instruction sets beyond the baseline are set per
# source file, in src/backend/cpu/CMakeLists.txt, and nowhere else.
add_library(edgerunner_flags INTERFACE)
target_compile_options(edgerunner_flags INTERFACE -Wall -Wextra -Wpedantic -Wshadow
                       -Wnon-virtual-dtor -Wno-missing-field-initializers)
if(EDGERUNNER_WERROR)
  target_compile_options(edgerunner_flags INTERFACE -Werror)
endif()
# a*b+c must mean the same in every translation unit: fused only where the source says so.
target_compile_options(edgerunner_flags INTERFACE -ffp-contract=off)

# edgerunner_compile_alone(TARGET FILES...): where CMAKE_UNITY_BUILD compiles the sources of a folder
# together, not these: names that are theirs alone meet those of their neighbours.
function(edgerunner_compile_alone target)
  set_source_files_properties(${ARGN} TARGET_DIRECTORY ${target}
                              PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
endfunction()

# The same for the files of EDGERUNNER_COMPILE_ALONE, in the targets of a folder and below it.
function(edgerunner_compile_listed_alone folder)
  set_source_files_properties(${EDGERUNNER_COMPILE_ALONE} DIRECTORY ${folder}
                              PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  get_property(folders DIRECTORY ${folder} PROPERTY SUBDIRECTORIES)
  foreach(below IN LISTS folders)
    edgerunner_compile_listed_alone(${below})
  endforeach()
endfunction()

if(EDGERUNNER_SANITIZE)
  add_compile_options(-fsanitize=${EDGERUNNER_SANITIZE} -fno-omit-frame-pointer
                      -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${EDGERUNNER_SANITIZE})
endif()
