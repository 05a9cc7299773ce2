extension SessionSnapshot {
    /// The protocol of a connection.
    package enum Transport: String, Sendable, CaseIterable {
        case rtmp, rtmps
        case httpFLV = "http-flv"
        case httpsFLV = "https-flv"
        case wsFLV = "ws-flv"
        case wssFLV = "wss-flv"
        case httpMP4 = "http-fmp4"
        case httpsMP4 = "https-fmp4"
        case wsMP4 = "ws-fmp4"
        case wssMP4 = "wss-fmp4"
        case hls
        case webrtc
    }
}
