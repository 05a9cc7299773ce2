/// The information object of `onStatus`, `_result` and `_error` (RTMP 1.0 §7.2, and Adobe's ActionScript reference for the codes).
package struct Status: Sendable, Equatable {
    package enum Level: String, Sendable {
        case status
        case warning
        case error
    }

    package var level: Level
    package var code: String
    package var description: String

    package init(_ code: String, level: Level = .status, _ description: String) {
        self.level = level
        self.code = code
        self.description = description
    }

    /// Reads an information object; `nil` if it has no code.
    package init?(_ value: AMF0Value) {
        guard let code = value["code"]?.string else { return nil }
        self.level = value["level"]?.string.flatMap(Level.init(rawValue:)) ?? .status
        self.code = code
        self.description = value["description"]?.string ?? ""
    }

    package func object(_ extra: [AMF0Property] = []) -> AMF0Value {
        .object(
            [
                AMF0Property(name: "level", value: .string(self.level.rawValue)),
                AMF0Property(name: "code", value: .string(self.code)),
                AMF0Property(name: "description", value: .string(self.description)),
            ] + extra)
    }
}

/// Names of the status codes in use.
package enum StatusCode {
    package static let connectSuccess = "NetConnection.Connect.Success"
    package static let connectRejected = "NetConnection.Connect.Rejected"
    package static let connectInvalidApp = "NetConnection.Connect.InvalidApp"
    package static let connectClosed = "NetConnection.Connect.Closed"
    /// Enhanced RTMP v2, Reconnect Request.
    package static let connectReconnectRequest = "NetConnection.Connect.ReconnectRequest"
    package static let connectAppShutdown = "NetConnection.Connect.AppShutdown"
    package static let callFailed = "NetConnection.Call.Failed"
    package static let publishStart = "NetStream.Publish.Start"
    package static let publishBadName = "NetStream.Publish.BadName"
    package static let unpublishSuccess = "NetStream.Unpublish.Success"
    package static let playReset = "NetStream.Play.Reset"
    package static let playStart = "NetStream.Play.Start"
    package static let playStop = "NetStream.Play.Stop"
    package static let playFailed = "NetStream.Play.Failed"
    package static let playStreamNotFound = "NetStream.Play.StreamNotFound"
    package static let playPublishNotify = "NetStream.Play.PublishNotify"
    package static let playUnpublishNotify = "NetStream.Play.UnpublishNotify"
    package static let pauseNotify = "NetStream.Pause.Notify"
    package static let unpauseNotify = "NetStream.Unpause.Notify"
    package static let seekNotify = "NetStream.Seek.Notify"
}
