# SPDX-License-Identifier: BSD-3-Clause
# rpma_library(name
#	OBJECTS room ...        the object libraries of which it consists
#	MAP file                its version script, in the caller's folder
#	[LINK library ...]      the libraries with which it is linked
#	[SOVERSION n]
#	[OUTPUT_NAME name]      the file is lib<name>.so
#	[HEADER file]           its public header, below include/, if other programs use the library; then:
#	DESCRIPTION text        of the package lib<name>, for pkg-config and find_package()
#	[NEEDS library ...]     other libraries that programs also link, by the linker's names
#	[NEEDS_PRIVATE lib ...] libraries that it needs itself, for static linking
#	SYMBOLS NODE=LIST ...)  its functions: a list in tests/abi for each node of the map
# Builds and installs a shared library. A library with a header also becomes a package: tests/abi
# compares its symbols and manual pages with the lists, and compiles its header alone. A new library
# needs a folder, a call of this function, and a row of include rules in check-rooms.sh; without the
# row the configuration fails.
include(CMakePackageConfigHelpers)

function(rpma_library_has_rules name)
	file(RELATIVE_PATH folder ${CMAKE_SOURCE_DIR} ${CMAKE_CURRENT_SOURCE_DIR})
	file(STRINGS ${CMAKE_SOURCE_DIR}/cmake/check-rooms.sh row REGEX "^${folder}[ /]")
	if(NOT row)
		message(FATAL_ERROR "library ${name}: cmake/check-rooms.sh has no row for ${folder}")
	endif()
endfunction()

# rpma_library_package(output): the files that `cmake --install` installs in addition to the
# library, at the same paths as upstream's librpma.
function(rpma_library_package output)
	set(LIBRARY_NAME ${output})
	set(LIBRARY_PACKAGE lib${output})
	string(TOUPPER ${LIBRARY_PACKAGE} LIBRARY_PREFIX)
	set(LIBRARY_DESCRIPTION ${L_DESCRIPTION})
	set(LIBRARY_SOVERSION ${L_SOVERSION})
	set(LIBRARY_NEEDS "${L_NEEDS}")
	list(TRANSFORM L_NEEDS PREPEND "-l" OUTPUT_VARIABLE LIBRARY_LIBS)
	list(JOIN LIBRARY_LIBS " " LIBRARY_LIBS)
	list(TRANSFORM L_NEEDS_PRIVATE PREPEND "-l" OUTPUT_VARIABLE LIBRARY_LIBS_PRIVATE)
	list(JOIN LIBRARY_LIBS_PRIVATE " " LIBRARY_LIBS_PRIVATE)
	# The prefix in the .pc file is relative to the file itself, so that `cmake --install
	# --prefix` can move the tree.
	file(RELATIVE_PATH LIBRARY_PC_TO_PREFIX /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
	string(REGEX REPLACE "/$" "" LIBRARY_PC_TO_PREFIX "${LIBRARY_PC_TO_PREFIX}")

	set(package_dir ${CMAKE_INSTALL_LIBDIR}/${LIBRARY_PACKAGE}/cmake)
	set(built ${CMAKE_BINARY_DIR}/packages)
	# The .pc file is made during the installation, because only then the prefix is known.
	configure_file(${CMAKE_SOURCE_DIR}/cmake/library-install-pc.cmake.in
		${built}/${LIBRARY_PACKAGE}-install-pc.cmake @ONLY)
	install(SCRIPT ${built}/${LIBRARY_PACKAGE}-install-pc.cmake)
	configure_package_config_file(${CMAKE_SOURCE_DIR}/cmake/library-config.cmake.in
		${built}/${LIBRARY_PACKAGE}-config.cmake INSTALL_DESTINATION ${package_dir}
		PATH_VARS CMAKE_INSTALL_INCLUDEDIR CMAKE_INSTALL_LIBDIR)
	write_basic_package_version_file(${built}/${LIBRARY_PACKAGE}-config-version.cmake
		COMPATIBILITY AnyNewerVersion)
	install(FILES ${built}/${LIBRARY_PACKAGE}-config.cmake
		${built}/${LIBRARY_PACKAGE}-config-version.cmake DESTINATION ${package_dir})
	install(FILES ${CMAKE_SOURCE_DIR}/include/${L_HEADER} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
endfunction()

function(rpma_library name)
	cmake_parse_arguments(L "" "MAP;SOVERSION;OUTPUT_NAME;HEADER;DESCRIPTION"
		"OBJECTS;LINK;NEEDS;NEEDS_PRIVATE;SYMBOLS" ${ARGN})
	get_filename_component(map ${L_MAP} ABSOLUTE)
	set(output ${name})
	if(L_OUTPUT_NAME)
		set(output ${L_OUTPUT_NAME})
	endif()
	rpma_library_has_rules(${name})

	add_library(${name} SHARED)
	foreach(room ${L_OBJECTS})
		target_sources(${name} PRIVATE $<TARGET_OBJECTS:${room}>)
	endforeach()
	# Programs find the library relative to their own path, so that a prefix in a home directory
	# works without any setting.
	set_target_properties(${name} PROPERTIES OUTPUT_NAME ${output} LINK_DEPENDS ${map}
		LINKER_LANGUAGE C INSTALL_RPATH "$ORIGIN")
	if(DEFINED L_SOVERSION)
		set_target_properties(${name} PROPERTIES VERSION ${L_SOVERSION} SOVERSION ${L_SOVERSION})
	endif()
	target_link_options(${name} PRIVATE -Wl,--version-script=${map} ${RPMA_WHOLE_LINK})
	target_link_libraries(${name} PRIVATE ${L_LINK})
	install(TARGETS ${name} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
	if(NOT L_HEADER)
		return()
	endif()
	# The version script decides which functions the library exports, so the objects must not
	# hide any function.
	set_target_properties(${L_OBJECTS} PROPERTIES C_VISIBILITY_PRESET default)
	target_include_directories(${name} PUBLIC $<BUILD_INTERFACE:${CMAKE_SOURCE_DIR}/include>
		$<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
	rpma_library_package(${output})
	set_target_properties(${name} PROPERTIES RPMA_MAP ${map} RPMA_SYMBOLS "${L_SYMBOLS}"
		RPMA_HEADER ${L_HEADER})
	set_property(GLOBAL APPEND PROPERTY RPMA_LIBRARIES ${name})
endfunction()
