# SPDX-License-Identifier: BSD-3-Clause
# The installation of all files except the libraries (library.cmake) and the launcher (install-softrnic.cmake).
if(NOT TARGET rpma OR NOT TARGET rpma_tool)
	return()
endif()
set_target_properties(rpma_tool rpmemd rpmirrord PROPERTIES INSTALL_RPATH "$ORIGIN/../${CMAKE_INSTALL_LIBDIR}")

install(TARGETS rpma_tool rpmemd rpmirrord RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})

completion(rpma rpmirror)

foreach(section 1 3 5 7)
	install(DIRECTORY doc/man/${section}/ DESTINATION ${CMAKE_INSTALL_MANDIR}/man${section}
		FILES_MATCHING PATTERN "*.${section}")
endforeach()
# With the prefix /usr this is the folder in which Debian's python3 finds packages.
set(RPMA_PYTHON_DIR lib/python3/dist-packages CACHE STRING "where the packages for Python are installed")
install(DIRECTORY python/_rpma python/rpma python/rpmirror DESTINATION ${RPMA_PYTHON_DIR}
	FILES_MATCHING PATTERN "*.py" PATTERN py.typed PATTERN __pycache__ EXCLUDE)

# The installed files are arranged as in the source tree, so that the links between documents work.
install(FILES LICENSE README.md CHANGELOG.md CONTRIBUTING.md SECURITY.md DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(FILES python/README.md DESTINATION ${CMAKE_INSTALL_DOCDIR}/python)
install(FILES tests/README.md DESTINATION ${CMAKE_INSTALL_DOCDIR}/tests)
install(DIRECTORY doc/ DESTINATION ${CMAKE_INSTALL_DOCDIR}/doc FILES_MATCHING PATTERN "*.md"
	PATTERN man EXCLUDE)
install(DIRECTORY examples DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY bench DESTINATION ${CMAKE_INSTALL_DOCDIR}
	FILES_MATCHING PATTERN "*.md" PATTERN "*.json" PATTERN "*.svg" PATTERN "*.png")
install(FILES contrib/prometheus/rules.yml DESTINATION ${CMAKE_INSTALL_DOCDIR}/contrib/prometheus)
install(FILES contrib/grafana/rpmirror.json DESTINATION ${CMAKE_INSTALL_DOCDIR}/contrib/grafana)

# Example configurations, each in the folder of its daemon.
foreach(daemon rpma-serve rpmemd rpmirrord)
	file(GLOB configurations ${CMAKE_SOURCE_DIR}/contrib/examples/${daemon}*.conf)
	string(REPLACE rpma-serve rpma package ${daemon})
	install(FILES ${configurations} DESTINATION ${CMAKE_INSTALL_DATAROOTDIR}/doc/${package}/examples)
endforeach()

# Pacemaker looks for agents only below this folder, whatever the prefix of the libraries is.
install(PROGRAMS contrib/ocf/rpmirror DESTINATION lib/ocf/resource.d/rpma)

configure_file(cmake/install-unit.cmake.in install-unit.cmake @ONLY)
install(SCRIPT ${CMAKE_BINARY_DIR}/install-unit.cmake)

# This script must run at the end of the installation.
configure_file(cmake/say-how-found.cmake.in say-how-found.cmake @ONLY)
install(SCRIPT ${CMAKE_BINARY_DIR}/say-how-found.cmake)
