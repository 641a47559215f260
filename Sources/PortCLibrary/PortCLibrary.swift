// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

// The C library of the platform, under one name. This is the only file that checks which one it is.
//
// It is a target of its own because clients import PortSystem: a C library that PortSystem re-exported would put all
// its names into the clients' programs, too.

#if canImport(Glibc)
@_exported public import Glibc
#elseif canImport(Musl)
@_exported public import Musl
#elseif canImport(Android)
@_exported public import Android
#else
#error("Needs Linux with glibc or musl, or Android.")
#endif
