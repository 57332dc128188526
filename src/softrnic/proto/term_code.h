/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * term_code.h -- every error that a Terminate can carry, as layer << 12 | etype << 8 | code
 * (RFC 5040 s4.8, RFC 5041 s8, RFC 5044 s8, RFC 6581 s10).
 */
#ifndef PROTO_TERM_CODE_H
#define PROTO_TERM_CODE_H

enum term_layer { TERM_RDMAP, TERM_DDP, TERM_LLP };

/* Error types within the layers. */
enum term_rdmap_etype { TERM_RDMAP_LOCAL, TERM_RDMAP_PROTECTION, TERM_RDMAP_OPERATION };
enum term_ddp_etype { TERM_DDP_LOCAL, TERM_DDP_TAGGED, TERM_DDP_UNTAGGED, TERM_DDP_LLP };
enum term_llp_etype { TERM_LLP_MPA };

#define TERM_CODE(layer, etype, code) ((layer) << 12 | (etype) << 8 | (code))

#define TERM_ERRORS(X)                                                                             \
	X(RDMAP_LOCAL_CATASTROPHIC, 0, 0, 0x00, "RDMAP: local catastrophic error")                 \
	X(RDMAP_INVALID_STAG, 0, 1, 0x00, "RDMAP: invalid STag")                                   \
	X(RDMAP_BASE_BOUNDS, 0, 1, 0x01, "RDMAP: base or bounds violation")                        \
	X(RDMAP_ACCESS, 0, 1, 0x02, "RDMAP: access rights violation")                              \
	X(RDMAP_STAG_NOT_ASSOCIATED, 0, 1, 0x03, "RDMAP: STag not associated with the stream")     \
	X(RDMAP_TO_WRAP, 0, 1, 0x04, "RDMAP: TO wrap")                                             \
	X(RDMAP_STAG_NOT_INVALIDATED, 0, 1, 0x09, "RDMAP: STag cannot be invalidated")             \
	X(RDMAP_PROTECTION_UNSPECIFIED, 0, 1, 0xff, "RDMAP: unspecified protection error")         \
	X(RDMAP_BAD_VERSION, 0, 2, 0x05, "RDMAP: invalid RDMAP version")                           \
	X(RDMAP_UNEXPECTED_OPCODE, 0, 2, 0x06, "RDMAP: unexpected opcode")                         \
	X(RDMAP_STREAM_CATASTROPHIC, 0, 2, 0x07, "RDMAP: catastrophic error of this stream")       \
	X(RDMAP_GLOBAL_CATASTROPHIC, 0, 2, 0x08, "RDMAP: catastrophic global error")               \
	X(RDMAP_CANNOT_INVALIDATE, 0, 2, 0x09, "RDMAP: STag cannot be invalidated (operation)")    \
	X(RDMAP_OPERATION_UNSPECIFIED, 0, 2, 0xff, "RDMAP: unspecified operation error")           \
	X(DDP_LOCAL_CATASTROPHIC, 1, 0, 0x00, "DDP: local catastrophic error")                     \
	X(DDP_INVALID_STAG, 1, 1, 0x00, "DDP tagged: invalid STag")                                \
	X(DDP_BASE_BOUNDS, 1, 1, 0x01, "DDP tagged: base or bounds violation")                     \
	X(DDP_STAG_NOT_ASSOCIATED, 1, 1, 0x02, "DDP tagged: STag not associated with the stream")  \
	X(DDP_TO_WRAP, 1, 1, 0x03, "DDP tagged: TO wrap")                                          \
	X(DDP_TAGGED_BAD_VERSION, 1, 1, 0x04, "DDP tagged: invalid DDP version")                   \
	X(DDP_BAD_QN, 1, 2, 0x01, "DDP untagged: invalid QN")                                      \
	X(DDP_NO_BUFFER, 1, 2, 0x02, "DDP untagged: invalid MSN, no buffer available")             \
	X(DDP_BAD_MSN, 1, 2, 0x03, "DDP untagged: invalid MSN, range is not valid")                \
	X(DDP_BAD_MO, 1, 2, 0x04, "DDP untagged: invalid MO")                                      \
	X(DDP_TOO_LONG, 1, 2, 0x05, "DDP untagged: message too long for the buffer")               \
	X(DDP_UNTAGGED_BAD_VERSION, 1, 2, 0x06, "DDP untagged: invalid DDP version")               \
	X(MPA_CONNECTION_LOST, 2, 0, 0x01, "MPA: TCP connection closed or lost")                   \
	X(MPA_CRC, 2, 0, 0x02, "MPA: CRC mismatch")                                                \
	X(MPA_MARKER, 2, 0, 0x03, "MPA: marker and ULPDU_Length disagree")                         \
	X(MPA_BAD_START, 2, 0, 0x04, "MPA: invalid request or reply frame")                        \
	X(MPA_LOCAL_CATASTROPHIC, 2, 0, 0x05, "MPA: local catastrophic error")                     \
	X(MPA_INSUFFICIENT_IRD, 2, 0, 0x06, "MPA: insufficient IRD resources")                     \
	X(MPA_NO_RTR, 2, 0, 0x07, "MPA: no matching RTR option")

enum term_error {
#define X(name, layer, etype, code, text) TERM_##name = TERM_CODE(layer, etype, code),
	TERM_ERRORS(X)
#undef X
};

/* Returns the meaning of the code as text, never NULL. */
const char *term_str(unsigned error);

#endif
