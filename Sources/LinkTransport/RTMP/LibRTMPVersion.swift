internal import CLibRTMP

/// The version of librtmp: "2.4" for Debian's.
package enum LibRTMPVersion {
    /// As reported by the library: 0x00MMmmpp.
    package static var running: String {
        let version = RTMP_LibVersion()
        return "\(version >> 16 & 0xFF).\(version >> 8 & 0xFF)"
    }
    /// Whether program and library have the same interface.
    package static var fits: Bool { RTMP_LibVersion() >> 8 == RTMP_LIB_VERSION >> 8 }
}
