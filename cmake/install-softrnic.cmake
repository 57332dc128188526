# SPDX-License-Identifier: BSD-3-Clause
# The installation of the launcher, and of the libraries that it puts in place of others.
if(NOT TARGET softrnic OR NOT TARGET softrnic_run)
	return()
endif()
install(TARGETS dropin_ibverbs dropin_rdmacm
	LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/softrnic-dropin)
install(TARGETS softrnic_run RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
if(NOT RPMA_ONLY_SOFTRNIC) # install.cmake installs all manual pages
	return()
endif()
install(FILES doc/man/1/softrnic.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
install(FILES doc/man/7/softrnic.7 doc/man/7/softrnic-verbs.7 DESTINATION ${CMAKE_INSTALL_MANDIR}/man7)
