# Makes the Debian package, unpacks it, and runs the program that is in it.
#   cmake -DBUILD_DIR= -DCPACK= -DDPKG_DEB= -P package.cmake
set(work ${BUILD_DIR}/tests/package)
file(REMOVE_RECURSE ${work})

function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE status OUTPUT_VARIABLE output
                  ERROR_VARIABLE output)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "${ARGN} failed:\n${output}")
  endif()
endfunction()

run(${CPACK} --config ${BUILD_DIR}/CPackConfig.cmake -G DEB -B ${work})
file(GLOB packages ${work}/edgerunner_*.deb)
list(LENGTH packages count)
if(NOT count EQUAL 1)
  message(FATAL_ERROR "cpack made ${count} packages: ${packages}")
endif()
run(${DPKG_DEB} --extract ${packages} ${work}/root)
run(${work}/root/usr/bin/edgerunner --version)
