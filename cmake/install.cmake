# What `cmake --install` puts in place: the library, its public headers, and what find_package()
# needs to link it from elsewhere; the program, its man page and completions (component program).
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(EDGERUNNER_CMAKE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/edgerunner)

install(TARGETS edgerunner EXPORT edgerunnerTargets
        ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
        LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
        RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/edgerunner
        DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
if(TARGET edgerunner_program)
  set(documents ${PROJECT_BINARY_DIR}/documents)
  install(TARGETS edgerunner_program COMPONENT program)
  install(FILES ${documents}/edgerunner.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1
          COMPONENT program OPTIONAL)
  install(FILES ${documents}/edgerunner COMPONENT program OPTIONAL
          DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
  install(FILES ${documents}/_edgerunner COMPONENT program OPTIONAL
          DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/vendor-completions)
  install(FILES ${documents}/edgerunner.fish COMPONENT program OPTIONAL
          DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
  install(FILES ${PROJECT_SOURCE_DIR}/packaging/edgerunner.service COMPONENT program
          DESTINATION ${CMAKE_INSTALL_DOCDIR}/examples)
endif()
install(EXPORT edgerunnerTargets NAMESPACE edgerunner:: DESTINATION ${EDGERUNNER_CMAKE_DIR})

# A shared library carries what it was linked with; a static one hands that on.
get_target_property(EDGERUNNER_LIBRARY_TYPE edgerunner TYPE)
configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/edgerunnerConfig.cmake.in
                              ${PROJECT_BINARY_DIR}/edgerunnerConfig.cmake
                              INSTALL_DESTINATION ${EDGERUNNER_CMAKE_DIR})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/edgerunnerConfigVersion.cmake
                                 COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/edgerunnerConfig.cmake
              ${PROJECT_BINARY_DIR}/edgerunnerConfigVersion.cmake
        DESTINATION ${EDGERUNNER_CMAKE_DIR})
