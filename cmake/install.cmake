# SPDX-License-Identifier: BSD-3-Clause
# The installation. The package files have the same places as upstream's.
include(CMakePackageConfigHelpers)

set(RPMA_PACKAGE_DIR ${CMAKE_INSTALL_LIBDIR}/librpma/cmake)

# Relative to the installed program, so that any prefix works.
if(NOT TARGET rpma OR NOT TARGET softrnic OR NOT TARGET rpma_tool OR NOT TARGET softrnic_run)
	return()
endif()
set_target_properties(rpma PROPERTIES INSTALL_RPATH "$ORIGIN")
set_target_properties(rpma_tool PROPERTIES INSTALL_RPATH "$ORIGIN/../${CMAKE_INSTALL_LIBDIR}")

install(TARGETS rpma softrnic LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(TARGETS rpma_tool RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(FILES include/librpma.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})

install(TARGETS softrnic_verbs LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(TARGETS dropin_ibverbs dropin_rdmacm
	LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/softrnic-dropin NAMELINK_SKIP)
install(TARGETS softrnic_run RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})

foreach(section 1 3 7)
	install(DIRECTORY doc/man/${section}/ DESTINATION ${CMAKE_INSTALL_MANDIR}/man${section}
		FILES_MATCHING PATTERN "*.${section}")
endforeach()
# Laid out as in the tree, so that the links between documents work.
install(FILES LICENSE README.md CHANGELOG.md CONTRIBUTING.md SECURITY.md DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(FILES tests/README.md DESTINATION ${CMAKE_INSTALL_DOCDIR}/tests)
install(DIRECTORY doc/ DESTINATION ${CMAKE_INSTALL_DOCDIR}/doc FILES_MATCHING PATTERN "*.md"
	PATTERN man EXCLUDE)
install(DIRECTORY examples DESTINATION ${CMAKE_INSTALL_DOCDIR})

# Relative to itself, so that `cmake --install --prefix` may move the tree.
file(RELATIVE_PATH RPMA_PC_TO_PREFIX /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
string(REGEX REPLACE "/$" "" RPMA_PC_TO_PREFIX "${RPMA_PC_TO_PREFIX}")
# At installation, because only then the prefix is known.
configure_file(cmake/install-pc.cmake.in install-pc.cmake @ONLY)
install(SCRIPT ${CMAKE_BINARY_DIR}/install-pc.cmake)
configure_file(cmake/install-unit.cmake.in install-unit.cmake @ONLY)
install(SCRIPT ${CMAKE_BINARY_DIR}/install-unit.cmake)

configure_package_config_file(cmake/librpma-config.cmake.in librpma-config.cmake
	INSTALL_DESTINATION ${RPMA_PACKAGE_DIR}
	PATH_VARS CMAKE_INSTALL_INCLUDEDIR CMAKE_INSTALL_LIBDIR)
write_basic_package_version_file(librpma-config-version.cmake COMPATIBILITY AnyNewerVersion)
install(FILES ${CMAKE_BINARY_DIR}/librpma-config.cmake
	${CMAKE_BINARY_DIR}/librpma-config-version.cmake DESTINATION ${RPMA_PACKAGE_DIR})

# At the end of everything else.
configure_file(cmake/say-how-found.cmake.in say-how-found.cmake @ONLY)
install(SCRIPT ${CMAKE_BINARY_DIR}/say-how-found.cmake)
