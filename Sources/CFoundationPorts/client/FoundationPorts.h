// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors
//
// For programs in C and C++ that use CFMessagePort on Linux: CoreFoundation's headers, and what they lack there. The
// library is FoundationPortsC. Examples/Listing-3-17-C/README.md of the package has the command that builds a program.

#ifndef FOUNDATION_PORTS_H
#define FOUNDATION_PORTS_H

#if !defined(__clang__) || !defined(__BLOCKS__)
#error "CoreFoundation's headers need clang -fblocks. The toolchain of Swift has clang."
#endif

#include <CoreFoundation/CoreFoundation.h>
#include <dispatch/dispatch.h>

#if defined(__cplusplus)
extern "C" {
#endif

/// Has a queue serve a local port, one message after the other in their order; NULL ends that.
///
/// A port has a queue or a run-loop source, not both: the second is refused, with a line on standard error.
extern void CFMessagePortSetDispatchQueue(CFMessagePortRef ms, dispatch_queue_t queue);

#if defined(__cplusplus)
}
#endif

/// With `-DFOUNDATION_PORTS_CONSTANT_STRINGS -fconstant-cfstrings -fcf-runtime-abi=swift`, CFSTR is a constant, as on
/// macOS: `static CFStringRef name = CFSTR("name");` outside of functions. Otherwise CFSTR is CoreFoundation's, a call.
#if defined(FOUNDATION_PORTS_CONSTANT_STRINGS)
#undef CFSTR
#define CFSTR(text) ((CFStringRef)__builtin___CFStringMakeConstantString("" text ""))
#endif

#endif
