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
if(EDGERUNNER_SANITIZE)
  add_compile_options(-fsanitize=${EDGERUNNER_SANITIZE} -fno-omit-frame-pointer
                      -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${EDGERUNNER_SANITIZE})
endif()
