/// The wire format in which viewers receive a stream's messages.
package enum WireFormat: Int, Sendable, CaseIterable {
    /// RTMP chunks.
    case rtmp
    /// FLV tags, each a chunk of an HTTP/1.1 body.
    case flvOverHTTP
    /// FLV tags, each a WebSocket message.
    case flvOverWebSocket
    /// The payload alone, as a chunk of an HTTP/1.1 body.
    case payloadOverHTTP
    /// The payload alone, as a WebSocket message.
    case payloadOverWebSocket
    /// The payload alone, given to the viewer message by message: see ``ViewerSink/deliver(_:)``.
    case packets
}

extension WireFormat {
    /// Whether viewers in this wire format get FLV tags, either plain or inside RTMP messages.
    var carriesTags: Bool {
        switch self {
        case .rtmp, .flvOverHTTP, .flvOverWebSocket: true
        case .payloadOverHTTP, .payloadOverWebSocket, .packets: false
        }
    }
}
