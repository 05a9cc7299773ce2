import DTLSSRTP

/// Receives one publisher's tracks: puts packets in order, asks for those that are missing and for keyframes, puts pictures together, and gives each its
/// time. No socket, no clock: packets and the time come in. Used by one thread at a time.
package final class MediaReceiver {
    package enum Output: Sendable, Equatable {
        /// The units of a picture, parameter sets too, without lengths. Times in ms from the first packet.
        case picture([[UInt8]], isKeyframe: Bool, ms: Int64)
        /// A packet of Opus.
        case sound([UInt8], ms: Int64)
    }

    /// A track of the publisher, by its synchronization source once one has come.
    private struct Track {
        var source: UInt32?
        var buffer: JitterBuffer
        var clock: TrackClock
        var statistics: ArrivalStatistics

        init(rate: Int64, waitMs: Int64, most: Int) {
            self.buffer = JitterBuffer(waitMs: waitMs, most: most)
            self.clock = TrackClock(rate: rate)
            self.statistics = ArrivalStatistics(rate: rate)
        }
    }

    private let formats: PublishFormats
    /// Ours, under which reports go out.
    private let source: UInt32
    private var video = Track(rate: 90_000, waitMs: MediaReceiver.videoWaitMs, most: 2_048)
    private var sound = Track(rate: 48_000, waitMs: MediaReceiver.soundWaitMs, most: 256)
    private var picture = H264Assembler()
    private var begunMs: Int64?
    private var output: [Output] = []
    private var arrivals = ArrivalLog()

    private var wantsKeyframe = true
    /// When the newest keyframe came.
    private var keyframeMs: Int64?
    private var askedKeyframeMs: Int64 = .min / 2
    private var reportedMs: Int64 = .min / 2
    package private(set) var bytesReceived: UInt64 = 0
    package private(set) var packetsReceived: UInt64 = 0
    /// Packets that never came.
    package private(set) var lost: UInt64 = 0
    package private(set) var keyframesAsked: UInt64 = 0
    package private(set) var repeatsAsked: UInt64 = 0

    private static let videoWaitMs: Int64 = 300
    private static let soundWaitMs: Int64 = 100
    private static let askAgainMs: Int64 = 500
    /// A browser makes keyframes when it is asked alone. Joiners begin at one, and so do the segments of HLS and recordings.
    private static let keyframeEveryMs: Int64 = 2_000
    private static let reportMs: Int64 = 500

    package init(_ formats: PublishFormats, source: UInt32) {
        self.formats = formats
        self.source = source
    }

    /// Bytes of packets that wait for others.
    package var heldBytes: Int { self.video.buffer.heldBytes + self.sound.buffer.heldBytes + self.picture.heldBytes }

    package func popOutput() -> [Output] {
        defer { self.output = [] }
        return self.output
    }

    // MARK: In

    /// `number`: the packet's transport-wide one, if it has one.
    package func receive(_ packet: RTPPacket, number: UInt16?, nowMs: Int64) {
        self.packetsReceived &+= 1
        self.bytesReceived &+= UInt64(packet.payload.count)
        if let number { self.arrivals.note(number, nowMs: nowMs) }
        if self.begunMs == nil { self.begunMs = nowMs }
        // A packet without payload is padding, by which a client measures its line.
        if packet.payloadType == self.formats.video {
            self.append(packet, to: &self.video, nowMs)
        } else if packet.payloadType == self.formats.sound {
            self.append(packet, to: &self.sound, nowMs)
        } else if let type = self.formats.repeats, packet.payloadType == type, packet.payload.count > 2 {
            self.receiveRepeat(packet, nowMs)
        }
        self.proceed(nowMs: nowMs)
    }

    private func append(_ packet: RTPPacket, to track: inout Track, _ nowMs: Int64) {
        // Another source is another sender of the same kind: layers, of which the first is kept.
        guard track.source == nil || track.source == packet.source else { return }
        track.source = packet.source
        track.statistics.note(packet, nowMs: nowMs)
        _ = track.buffer.append(packet, nowMs: nowMs)
    }

    /// RFC 4588 §4: the original number, then the payload.
    private func receiveRepeat(_ packet: RTPPacket, _ nowMs: Int64) {
        guard let source = self.video.source, let highest = self.video.statistics.highest else { return }
        let number = UInt16(packet.payload[packet.payload.startIndex]) << 8 | UInt16(packet.payload[packet.payload.startIndex + 1])
        let index = SRTPReceiver.index(of: number, near: highest)
        let original = RTPPacket(
            payloadType: self.formats.video ?? 0, isMarked: packet.isMarked, index: index, time: packet.time, source: source,
            payload: packet.payload.dropFirst(2))
        _ = self.video.buffer.append(original, nowMs: nowMs)
    }

    /// Sender reports.
    package func receive(_ packets: [ControlPacket], nowMs: Int64) {
        for case .sent(let report) in packets {
            if report.source == self.video.source {
                self.video.clock.note(ntp: report.ntp, time: report.rtpTime)
                self.video.statistics.note(report, nowMs: nowMs)
            } else if report.source == self.sound.source {
                self.sound.clock.note(ntp: report.ntp, time: report.rtpTime)
                self.sound.statistics.note(report, nowMs: nowMs)
            }
        }
    }

    /// Gives up on what has not come. Call it every 20 ms.
    package func tick(nowMs: Int64) { self.proceed(nowMs: nowMs) }

    private func proceed(nowMs: Int64) {
        let atMs = nowMs - (self.begunMs ?? nowMs)
        while let next = self.sound.buffer.pop(nowMs: nowMs) {
            guard case .packet(let packet) = next else {
                if case .gap(let count) = next { self.lost &+= UInt64(count) }
                continue
            }
            let ms = self.sound.clock.place(packet.time, arrivedMs: atMs, following: nil)
            if !packet.payload.isEmpty { self.output.append(.sound(Array(packet.payload), ms: ms)) }
        }
        while let next = self.video.buffer.pop(nowMs: nowMs) {
            switch next {
            case .gap(let count):
                self.lost &+= UInt64(count)
                self.picture.lose()
                self.wantsKeyframe = true
            case .packet(let packet):
                for picture in self.picture.append(packet) {
                    let reference = self.sound.source == nil ? nil : self.sound.clock.reference
                    let ms = self.video.clock.place(picture.time, arrivedMs: atMs, following: reference)
                    if picture.isKeyframe {
                        self.wantsKeyframe = false
                        self.keyframeMs = nowMs
                    }
                    // What follows a loss shows garbage until the next keyframe.
                    guard !self.wantsKeyframe else { continue }
                    self.output.append(.picture(picture.units, isKeyframe: picture.isKeyframe, ms: ms))
                }
            }
        }
    }

    // MARK: Out

    /// Clear RTCP that ends the connection.
    var goodbye: [UInt8] {
        ControlPacket.receiverReport([], from: self.source, name: Negotiation.canonicalName) + SenderReport.goodbye([self.source])
    }

    /// Clear RTCP that is to go out now; empty if there is none.
    package func popReports(nowMs: Int64) -> [UInt8] {
        var parts: [UInt8] = []
        for (track, isVideo) in [(self.video, true), (self.sound, false)] {
            guard let source = track.source else { continue }
            let missing = isVideo ? self.video.buffer.ask(nowMs: nowMs) : self.sound.buffer.ask(nowMs: nowMs)
            // A client repeats pictures; sound is as late as its repeat would be.
            guard isVideo, self.formats.repeatsOnRequest, !missing.isEmpty else { continue }
            self.repeatsAsked &+= UInt64(missing.count)
            parts += ControlPacket.ask(for: missing, of: source, from: self.source)
        }
        let isOld = nowMs - max(self.keyframeMs ?? nowMs, self.askedKeyframeMs) >= Self.keyframeEveryMs
        if isOld || self.wantsKeyframe && nowMs - self.askedKeyframeMs >= Self.askAgainMs, let source = self.video.source {
            self.askedKeyframeMs = nowMs
            self.keyframesAsked &+= 1
            parts += ControlPacket.askForKeyframe(of: source, from: self.source)
        }
        if self.formats.number != nil {
            parts += self.arrivals.popReport(from: self.source, of: self.video.source ?? self.sound.source ?? 0, nowMs: nowMs)
        }
        let isDue = nowMs - self.reportedMs >= Self.reportMs
        guard isDue || !parts.isEmpty else { return [] }
        if isDue { self.reportedMs = nowMs }
        // A compound packet begins with a report (RFC 3550 §6.1).
        var blocks: [ControlPacket.ReceptionReport] = []
        if isDue {
            if let block = self.video.statistics.popReport(nowMs: nowMs) { blocks.append(block) }
            if let block = self.sound.statistics.popReport(nowMs: nowMs) { blocks.append(block) }
        }
        return ControlPacket.receiverReport(blocks, from: self.source, name: Negotiation.canonicalName) + parts
    }
}
