# SPDX-License-Identifier: BSD-3-Clause
# The installation of the launcher, and of the libraries with which it replaces rdma-core's.
if(NOT TARGET softrnic OR NOT TARGET softrnic_run)
	return()
endif()
install(TARGETS dropin_ibverbs dropin_rdmacm
	LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/softrnic-dropin)
install(TARGETS softrnic_run RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})

# completion(NAME...): installs the scripts for completion in bash and zsh under these names. The
# same scripts complete all three programs.
set(RPMA_ZSH_DIR share/zsh/site-functions CACHE STRING "where functions for completion in zsh are installed")
function(completion)
	foreach(name ${ARGN})
		install(FILES contrib/completion/rpma.bash DESTINATION share/bash-completion/completions RENAME ${name})
		install(FILES contrib/completion/_rpma DESTINATION ${RPMA_ZSH_DIR} RENAME _${name})
	endforeach()
endfunction()
completion(softrnic)
if(NOT RPMA_ONLY_SOFTRNIC) # install.cmake installs all manual pages
	return()
endif()
install(FILES doc/man/1/softrnic.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
install(FILES doc/man/7/softrnic.7 doc/man/7/softrnic-verbs.7 DESTINATION ${CMAKE_INSTALL_MANDIR}/man7)
