/* SPDX-License-Identifier: BSD-3-Clause */
/* fork.c -- fork() for the files of this folder: takes their locks before fork(), and resets their
 * state in the child. */
#include "softrnic/io/admission.h"
#include "softrnic/io/conn_impl.h"
#include "softrnic/io/conn_watch.h"
#include "softrnic/io/engine.h"
#include "softrnic/io/link_shm_close.h"
#include "softrnic/io/qp_port.h"
#include "softrnic/io/trace.h"

void io_atfork_prepare(void)
{
	conns_atfork_prepare();
	watch_atfork_prepare();
	qp_port_atfork_prepare();
	conn_origin_atfork_prepare();
	engine_atfork_prepare();
	admission_atfork_prepare();
	trace_atfork_prepare();
}

void io_atfork_parent(void)
{
	trace_atfork_parent();
	admission_atfork_release();
	engine_atfork_parent();
	conn_origin_atfork_parent();
	qp_port_atfork_parent();
	watch_atfork_parent();
	conns_atfork_release();
}

/* The engine is handled last, because closing a socket may end its connection, which takes the
 * other locks. */
void io_atfork_child(void)
{
	trace_atfork_child();
	admission_atfork_release();
	conn_origin_atfork_child();
	qp_port_atfork_child();
	watch_atfork_child();
	conns_atfork_release();
	shm_close_atfork_child();
	engine_atfork_child();
}
