import NIOCore

/// The relay's decisions and reports about a message stream's publish or play.
extension ServerSession {
    // MARK: Publish

    package mutating func acceptPublish(_ streamID: UInt32) {
        guard self.streams.change(streamID, from: .decidingPublish, to: .publishing) else { return }
        self.send(.userControl(.streamBegin(streamID)))
        self.status(streamID, Status(StatusCode.publishStart, "Publishing."))
    }

    package mutating func rejectPublish(_ streamID: UInt32, _ status: Status) {
        guard self.streams.change(streamID, from: .decidingPublish, to: .ended) else { return }
        self.status(streamID, status)
    }

    /// Ends a publish from the relay's side: another connection took it over, or the server stops.
    package mutating func publishEnded(_ streamID: UInt32, _ status: Status) {
        guard self.streams.change(streamID, from: .publishing, to: .ended) else { return }
        self.status(streamID, status)
    }

    /// Asks the client to reconnect, to `tcUrl` or to its former address (Enhanced RTMP v2, Reconnect Request). Sends nothing and returns false if
    /// the client has not announced support (`capsEx` 1).
    package mutating func askToReconnect(to tcURL: String?) -> Bool {
        guard self.mayReconnect else { return false }
        self.status(
            0, Status(StatusCode.connectReconnectRequest, "The server asks you to connect again."),
            tcURL.map { [AMF0Property(name: "tcUrl", value: .string($0))] } ?? [])
        return true
    }

    /// Sends the publisher the data message `onUplink`: the rate that its uplink carried, and the bit rate at which to encode.
    package mutating func adviseUplink(_ streamID: UInt32, bitsPerSecond: Int) {
        guard self.isPublishing(streamID) else { return }
        var payload = ByteBuffer()
        payload.writeAMF0(.string("onUplink"))
        payload.writeAMF0([
            "bitsPerSecond": .number(Double(bitsPerSecond)),
            "advisedBitsPerSecond": .number((Double(bitsPerSecond) * Self.uplinkShare).rounded()),
        ])
        self.outputs.append(.send(Message(type: .dataAMF0, streamID: streamID, timestamp: 0, payload: payload)))
    }

    // MARK: Play

    /// Accepts a play. `extra` adds properties to the information object.
    package mutating func acceptPlay(_ streamID: UInt32, extra: [AMF0Property] = []) {
        guard self.streams.change(streamID, from: .decidingPlay, to: .playing) else { return }
        self.send(.userControl(.streamBegin(streamID)))
        // RTMP 1.0 §7.2.2.1: sent if the reset flag is set, which is the default.
        if self.streams.resets(streamID) {
            self.status(streamID, Status(StatusCode.playReset, "Playing and resetting."))
        }
        self.status(streamID, Status(StatusCode.playStart, "Started playing."), extra)
    }

    package mutating func rejectPlay(_ streamID: UInt32, _ status: Status) {
        guard self.streams.change(streamID, from: .decidingPlay, to: .ended) else { return }
        self.status(streamID, status)
    }

    /// Reports that a publisher arrived while the stream was playing. Not sent for one present at the start.
    package mutating func publisherArrived(_ streamID: UInt32, extra: [AMF0Property] = []) {
        guard self.streams.role(streamID) == .playing else { return }
        self.send(.userControl(.streamBegin(streamID)))
        self.status(streamID, Status(StatusCode.playPublishNotify, "The stream is being published."), extra)
    }

    /// Reports that the stream ended. Flash and ffmpeg listen for UnpublishNotify, gstreamer for StreamEOF, others for Play.Stop.
    package mutating func publisherLeft(_ streamID: UInt32) {
        guard self.streams.role(streamID) == .playing else { return }
        self.status(streamID, Status(StatusCode.playUnpublishNotify, "The stream is no longer published."))
        self.send(.userControl(.streamEOF(streamID)))
        self.status(streamID, Status(StatusCode.playStop, "The stream ended."))
    }

    /// Reports that the publisher is connected but sends nothing (RTMP 1.0 §7.1.7).
    package mutating func streamDried(_ streamID: UInt32) {
        guard self.streams.role(streamID) == .playing else { return }
        self.send(.userControl(.streamDry(streamID)))
    }

    /// Ends a play from the relay's side, for the given reason.
    package mutating func playEnded(_ streamID: UInt32, _ status: Status) {
        guard self.streams.change(streamID, from: .playing, to: .ended) else { return }
        self.status(streamID, status)
    }
}
