package import Rooms
package import Support

extension PushEnd {
    /// The end of a push whose connection closed for this reason.
    package init(_ reason: CloseReason) {
        switch reason {
        case .takenOver: self = .takenOver
        case .mediaIdle, .firstMediaTimeout: self = .mediaIdle
        case .dropped, .kicked: self = .dropped
        case .forbidden: self = .forbidden
        case .roomEnded: self = .roomEnded
        case .serverShutdown: self = .serverShutdown
        case .protocolError, .malformedMedia, .notRTMP, .inboundFlood, .badName: self = .protocolError
        default: self = .connectionLost
        }
    }

    /// Why a connection closes whose push the stream or the API has ended so, and the words for its client.
    package var asClose: (reason: CloseReason, words: String) {
        switch self {
        case .takenOver: (.takenOver, "The same publisher came back on another connection.")
        case .mediaIdle: (.mediaIdle, "No audio or video for too long.")
        case .forbidden: (.forbidden, "The stream was forbidden.")
        case .roomEnded: (.roomEnded, "The room has ended.")
        default: (.dropped, "The stream was dropped; it may be pushed again.")
        }
    }
}
