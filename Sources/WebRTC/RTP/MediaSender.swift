package import DTLSSRTP

/// Sends a stream's bundles to one viewer: headers, numbers and times of its own, encryption, repeats on request, sender reports. No clock: the time is
/// an input. Used by one thread at a time.
package final class MediaSender {
    /// A track in this viewer's numbering.
    private struct Track {
        let source: UInt32
        /// 2¹⁶ × roll-over counter + sequence number of the next packet. Begins below 2¹⁵, so that a loss at the first roll-over confuses nobody
        /// (RFC 3711 §3.3.1).
        var index: UInt64
        /// Added to the stream's time.
        let offset: UInt32
        /// The header extension of the packet's transport-wide number; nil: none.
        let numberedBy: UInt8?
        /// The header extension that holds pictures back; nil: none.
        let delayedBy: UInt8?
        var packets: UInt32 = 0
        var octets: UInt32 = 0
        /// The stream's time of the newest bundle, and when it went out.
        var last: (time: Int64, clockRate: Int64, atMs: Int64)?
    }

    private let negotiation: Negotiation
    private let cipher: SRTPSender
    // What is touched for each packet is unchecked: methods of these values call nobody, so no second access can begin during one.
    @exclusivity(unchecked) private var video: Track
    @exclusivity(unchecked) private var sound: Track
    private var repeats: Track
    /// The payload type of the sound that went out last: a look-up for each packet of a voice would be a tenth of its cost.
    @exclusivity(unchecked) private var soundType: (kind: PacketBundle.Kind, type: UInt8)?
    private var sentVideo = SentBundles()
    private var catchUp: CatchUp?
    /// The RTP time of the newest picture sent, without the track's offset.
    private var lastVideoTime: Int64?
    /// The NTP time of the stream's time 0: both tracks' reports lie on this line.
    private var ntpBase: UInt64?
    private var reportedMs: Int64 = .min / 2
    private var reportCount = 0
    private var reports: [(middle: UInt32, atMs: Int64)] = []
    private var repeatTokens = 0.0
    private var repeatTokensMs: Int64 = 0
    private var answeredMs: Int64 = .min / 2
    private var keyframeIntervalMs = MediaSender.keyframeIntervalMs

    @exclusivity(unchecked) package private(set) var line = LineQuality()
    package private(set) var relief = LineRelief()
    private var isWithoutPictures = false
    /// Pictures come with sound, and are to be in step with it.
    package var holdsPicturesBack = false
    package private(set) var repeated: UInt64 = 0
    /// Pictures that were left out for the line's sake.
    package private(set) var spared = 0
    /// Repeats that were asked for beyond the limit.
    private var denied: UInt64 = 0
    private var judgedDenied: UInt64 = 0
    private var judgedMs: Int64 = .min / 2
    package private(set) var keyframeRequests: UInt64 = 0
    @exclusivity(unchecked) package private(set) var bytesSent: UInt64 = 0
    @exclusivity(unchecked) package private(set) var packetsSent: UInt64 = 0

    private static let judgedEveryMs: Int64 = 1_000
    private static let reportMs: Int64 = 1_000
    /// The first reports come sooner: a player needs two of each track before it plays them in step.
    private static let firstReportMs: Int64 = 200
    private static let firstReports = 10
    /// Packets that a viewer may get again each second.
    private static let repeatsPerSecond = 1_000.0
    /// Least time between two keyframes for a viewer that asks; twice as long after each that did not help, up to the longest.
    private static let keyframeIntervalMs: Int64 = 500
    private static let longestKeyframeIntervalMs: Int64 = 8_000
    /// Bytes of RTP's header.
    private static let header = 12
    /// Pictures of a stream with sound are held back by this, in units of 10 ms: players hold back sound by about 100 ms, for its jitter, and would
    /// bring pictures there by themselves, but in half a minute.
    private static let least: UInt32 = 10
    private static let most: UInt32 = 1_000

    package init(_ negotiation: Negotiation, _ own: Negotiation.Own, _ keys: SRTPKeys) throws(DTLSError) {
        self.negotiation = negotiation
        self.cipher = try SRTPSender(keys)
        func track(_ source: UInt32, _ number: UInt8?, _ delay: UInt8? = nil) -> Track {
            Track(
                source: source, index: UInt64(UInt16.random(in: 1..<0x4000)), offset: UInt32.random(in: 0...UInt32.max), numberedBy: number,
                delayedBy: delay)
        }
        self.video = track(own.videoSource, negotiation.videoNumber, negotiation.delayNumber)
        self.sound = track(own.soundSource, negotiation.soundNumber)
        self.repeats = track(own.repeatSource, negotiation.videoNumber)
    }

    // MARK: Joining

    /// The pictures from `first` to `live`, in 90,000ths, are not shown at their own pace: each gets the time at which it goes out, so that the viewer
    /// decodes them at once and is at the live picture then.
    package func begin(first: Int64, live: Int64, nowMs: Int64) {
        self.catchUp = CatchUp(first: first, live: live, nowMs: nowMs)
    }

    // MARK: The line

    /// Judges the line, once a second at most. Returns whether the viewer gets another part of the stream from now on: see ``relief``.
    package func judgeLine(nowMs: Int64) -> Bool {
        guard nowMs - self.judgedMs >= Self.judgedEveryMs else { return false }
        self.judgedMs = nowMs
        // Whoever asks for more repeats than there may be is not helped by them.
        let isFlooded = self.denied > self.judgedDenied
        self.judgedDenied = self.denied
        let isWell = isFlooded ? false : self.line.isOverwhelmed(nowMs: nowMs).map { !$0 }
        guard self.relief.note(isWell: isWell, hasSound: self.sound.last != nil, nowMs: nowMs) else { return false }
        self.line.beginAnew()
        // What follows can be decoded from the next keyframe on.
        self.isWithoutPictures = true
        return true
    }

    /// Whether this picture is left out.
    private func isSpared(_ isKeyframe: Bool) -> Bool {
        switch self.relief.stage {
        case .all:
            if isKeyframe { self.isWithoutPictures = false }
            return self.isWithoutPictures
        case .keyframes: return !isKeyframe
        case .sound, .none: return true
        }
    }

    // MARK: Bundles

    /// Sends a bundle. `owner`: keeps its bytes. Returns false for one that this viewer has no format for.
    @discardableResult
    package func send(_ bundle: PacketBundle, owner: AnyObject, nowMs: Int64, to output: some PacketOutput) -> Bool {
        guard bundle.kind != .video else { return self.sendVideo(bundle, owner, nowMs, output) }
        guard let type = self.soundType(bundle.kind) else { return false }
        // A viewer that starts anew at the keyframe has heard what lies there.
        if let last = self.sound.last, bundle.time <= last.time, last.time - bundle.time < bundle.kind.clockRate { return true }
        let time = UInt32(truncatingIfNeeded: bundle.time) &+ self.sound.offset
        bundle.forEach { payload, _ in self.write(payload, type, time, marker: false, &self.sound, nowMs, output) }
        self.sound.last = (bundle.time, bundle.kind.clockRate, nowMs)
        return true
    }

    private func soundType(_ kind: PacketBundle.Kind) -> UInt8? {
        if let known = self.soundType, known.kind == kind { return known.type }
        guard let type = kind.sound.flatMap({ self.negotiation.sound[$0] }) else { return nil }
        self.soundType = (kind, type)
        return type
    }

    private func sendVideo(_ bundle: PacketBundle, _ owner: AnyObject, _ nowMs: Int64, _ output: some PacketOutput) -> Bool {
        guard let format = self.negotiation.format(for: bundle.profile) else { return false }
        guard !self.isSpared(bundle.isKeyframe) else {
            self.spared += 1
            return true
        }
        var time = bundle.time
        if let catchUp = self.catchUp {
            if let shown = catchUp.time(of: bundle.time, nowMs: nowMs) { time = shown } else { self.catchUp = nil }
        }
        // A picture behind another is shown behind it.
        if let last = self.lastVideoTime, self.catchUp != nil || time <= last, last - time < 90_000 { time = max(time, last + 1) }
        self.lastVideoTime = time
        let rtpTime = UInt32(truncatingIfNeeded: time) &+ self.video.offset
        let (first, number) = (self.video.index, self.line.nextNumber)
        let isDelayed = bundle.isKeyframe && self.holdsPicturesBack
        bundle.forEach { payload, isLast in
            self.write(payload, format.payloadType, rtpTime, marker: isLast, isDelayed: isDelayed, &self.video, nowMs, output)
        }
        if self.catchUp == nil { self.video.last = (bundle.time, bundle.kind.clockRate, nowMs) }
        guard self.negotiation.repeatsOnRequest else { return true }
        self.sentVideo.append(
            SentBundles.Sent(
                owner: owner, bytes: bundle.bytes, first: first, count: Int(self.video.index - first), number: number, isDelayed: isDelayed,
                time: rtpTime, payloadType: format.payloadType, atMs: nowMs))
        return true
    }

    @inline(__always)
    private func write(
        _ payload: UnsafeRawBufferPointer, _ type: UInt8, _ time: UInt32, marker: Bool, isDelayed: Bool = false, _ track: inout Track,
        _ nowMs: Int64, _ output: some PacketOutput
    ) {
        let header = Header(type: type, marker: marker, time: time, index: track.index, number: self.line.nextNumber, isDelayed: isDelayed)
        let written = self.protect(payload, header, track, output)
        // Also without success: no number may ever have other bytes (RFC 7714 §8.4).
        track.index += 1
        if track.numberedBy != nil { self.line.sentPacket(nowMs: nowMs) }
        guard written > 0 else { return }
        output.commit(written)
        track.packets &+= 1
        track.octets &+= UInt32(truncatingIfNeeded: payload.count)
        self.bytesSent &+= UInt64(written)
        self.packetsSent &+= 1
    }

    /// What a packet's header says. A value.
    private struct Header {
        let type: UInt8
        let marker: Bool
        let time: UInt32
        let index: UInt64
        /// The transport-wide one.
        let number: UInt16
        let isDelayed: Bool
    }

    /// RFC 3550 §5.1 and §5.3.1; RFC 8285 §4.2 of the extension.
    private func protect(_ payload: UnsafeRawBufferPointer, _ fields: Header, _ track: Track, _ output: some PacketOutput) -> Int {
        let delay = fields.isDelayed ? track.delayedBy : nil
        // Words of elements: three bytes for the number, four for the delay.
        let words = (track.numberedBy == nil ? 0 : 1) + (delay == nil ? 0 : 1)
        let header = words == 0 ? Self.header : Self.header + 4 + 4 * words
        let space = output.reserve(header + payload.count + self.cipher.profile.overhead)
        guard space.count >= header else { return 0 }
        let start: UInt32 = words == 0 ? 0x80 : 0x90
        let type = fields.marker ? 0x80 | fields.type : fields.type
        let first = start << 24 | UInt32(type) << 16 | UInt32(UInt16(truncatingIfNeeded: fields.index))
        space.storeBytes(of: first.bigEndian, as: UInt32.self)
        space.storeBytes(of: fields.time.bigEndian, toByteOffset: 4, as: UInt32.self)
        space.storeBytes(of: track.source.bigEndian, toByteOffset: 8, as: UInt32.self)
        if words > 0 {
            space.storeBytes(of: (UInt32(0xBEDE) << 16 | UInt32(words)).bigEndian, toByteOffset: 12, as: UInt32.self)
            var at = 16
            if let id = track.numberedBy {
                // The element's number and its length - 1, its two bytes, one of padding.
                let element = UInt32(id << 4 | 1) << 24 | UInt32(fields.number) << 8
                space.storeBytes(of: element.bigEndian, toByteOffset: at, as: UInt32.self)
                at += 4
            }
            if let delay {
                let element = UInt32(delay << 4 | 2) << 24 | Self.least << 12 | Self.most
                space.storeBytes(of: element.bigEndian, toByteOffset: at, as: UInt32.self)
            }
        }
        return self.cipher.protect(header: header, payload: payload, ssrc: track.source, index: fields.index, into: space)
    }

    // MARK: The viewer's reports

    /// Handles RTCP. `repeats`: whether packets that the viewer lacks go out again. Returns true if it needs a keyframe, which it is given at most twice a second.
    package func receive(_ packets: [ControlPacket], nowMs: Int64, repeats: Bool = true, to output: some PacketOutput) -> Bool {
        var wantsKeyframe = false
        for packet in packets {
            switch packet {
            case .report(let report): self.note(report, nowMs: nowMs)
            case .missing(let source, let numbers) where source == self.video.source && repeats:
                self.repeatPackets(numbers, nowMs: nowMs, to: output)
            case .keyframeWanted(let source) where source == self.video.source || source == 0:
                self.keyframeRequests += 1
                wantsKeyframe = true
            case .arrivals(let arrivals): self.line.note(arrivals, nowMs: nowMs)
            case .missing, .keyframeWanted, .goodbye, .sent: break
            }
        }
        // One that is under way is enough, and a line that loses the cached pictures again and again gets them ever less often.
        guard wantsKeyframe, self.relief.stage == .all, self.catchUp == nil, nowMs - self.answeredMs >= self.keyframeIntervalMs else {
            return false
        }
        let isSoon = nowMs - self.answeredMs < 2 * self.keyframeIntervalMs
        self.keyframeIntervalMs = isSoon ? min(Self.longestKeyframeIntervalMs, 2 * self.keyframeIntervalMs) : Self.keyframeIntervalMs
        self.answeredMs = nowMs
        return true
    }

    private func note(_ report: ControlPacket.ReceptionReport, nowMs: Int64) {
        // Where no pictures go out, nothing is said of them.
        let hasPictures = self.negotiation.hasVideo && self.relief.stage != .sound
        guard report.source == (hasPictures ? self.video.source : self.sound.source) else { return }
        let roundTripMs = self.reports.last { $0.middle == report.lastReport }.map {
            max(0, Double(nowMs - $0.atMs) - Double(report.sinceLastReport) * 1_000 / 65_536)
        }
        let track = report.source == self.video.source ? self.video : self.sound
        self.line.note(report, clockRate: Double(track.last?.clockRate ?? 90_000), roundTripMs: roundTripMs, nowMs: nowMs)
    }

    private func repeatPackets(_ numbers: [UInt16], nowMs: Int64, to output: some PacketOutput) {
        self.repeatTokens = min(
            Self.repeatsPerSecond, self.repeatTokens + Double(nowMs - self.repeatTokensMs) * Self.repeatsPerSecond / 1_000)
        self.repeatTokensMs = nowMs
        for number in numbers {
            guard self.repeatTokens >= 1 else {
                self.denied += 1
                return
            }
            // The newest packet with this number.
            let behind = UInt64(UInt16(truncatingIfNeeded: self.video.index &- 1) &- number)
            guard behind < self.video.index, let sent = self.sentVideo.find(self.video.index - 1 - behind),
                let bundle = PacketBundle(sent.bytes)
            else { continue }
            let index = self.video.index - 1 - behind
            guard let (payload, isLast) = bundle.payload(Int(index - sent.first)) else { continue }
            self.repeatTokens -= 1
            self.repeated += 1
            let type = self.negotiation.video.first { $0.payloadType == sent.payloadType }?.repeats
            guard let type else {
                // The same bytes under the same index, to the transport-wide number: another would give the key away.
                let number = sent.number &+ UInt16(truncatingIfNeeded: index - sent.first)
                let header = Header(
                    type: sent.payloadType, marker: isLast, time: sent.time, index: index, number: number, isDelayed: sent.isDelayed)
                let written = self.protect(payload, header, self.video, output)
                if written > 0 { output.commit(written) }
                if self.video.numberedBy != nil { self.line.repeatedPacket(number) }
                continue
            }
            // RFC 4588 §4: the original number, then the payload.
            var copy: [UInt8] = []
            copy.reserveCapacity(2 + payload.count)
            copy.append16(number)
            copy += payload
            copy.withUnsafeBytes { self.write($0, type, sent.time, marker: isLast, &self.repeats, nowMs, output) }
        }
    }

    // MARK: Sender reports

    /// Milliseconds between two reports now.
    package var reportIntervalMs: Int64 { self.reportCount < Self.firstReports ? Self.firstReportMs : Self.reportMs }

    /// The protected reports, if they are due. `wallMs`: since 1970.
    package func reportsDue(nowMs: Int64, wallMs: Int64) -> [UInt8]? {
        guard nowMs - self.reportedMs >= self.reportIntervalMs else { return nil }
        var reports: [SenderReport] = []
        for track in [self.video, self.sound] {
            guard let last = track.last else { continue }
            let mediaMs = Double(last.time) * 1_000 / Double(last.clockRate)
            let base: UInt64
            if let known = self.ntpBase {
                base = known
            } else {
                // RFC 868: 70 years from 1900 to 1970. The newest frame's time is now.
                base = Self.ntp(ms: Double(wallMs) + 2_208_988_800_000 - Double(nowMs - last.atMs) - mediaMs)
                self.ntpBase = base
            }
            reports.append(
                SenderReport(
                    source: track.source, ntp: base &+ Self.ntp(ms: mediaMs),
                    rtpTime: UInt32(truncatingIfNeeded: last.time) &+ track.offset, packets: track.packets, octets: track.octets))
        }
        guard !reports.isEmpty else { return nil }
        self.reportedMs = nowMs
        self.reportCount += 1
        for report in reports { self.reports.append((UInt32(truncatingIfNeeded: report.ntp >> 16), nowMs)) }
        self.reports.removeFirst(max(0, self.reports.count - 8))
        return self.cipher.protectControl(SenderReport.compound(reports, name: Negotiation.canonicalName))
    }

    private static func ntp(ms: Double) -> UInt64 {
        let seconds = (ms / 1_000).rounded(.down)
        // Ten thousand years; media has no time beyond.
        guard abs(seconds) < 3e11 else { return 0 }
        return UInt64(bitPattern: Int64(seconds)) << 32 &+ UInt64((ms / 1_000 - seconds) * 4_294_967_296)
    }

    /// The protected goodbye.
    package func goodbye() -> [UInt8]? {
        var sources: [UInt32] = []
        if self.negotiation.hasVideo { sources.append(self.video.source) }
        if self.negotiation.hasSound { sources.append(self.sound.source) }
        // A compound packet begins with a report (RFC 3550 §6.1); an empty one will do.
        var bytes: [UInt8] = [0x80, 201, 0, 1]
        bytes.append32(sources.first ?? 0)
        return self.cipher.protectControl(bytes + SenderReport.goodbye(sources))
    }
}

/// The times of a joiner's first pictures: those at which they go out, on the stream's timeline. So they are shown at once, and a player that learns from
/// them how the stream's time and its own clock belong together has learnt it when live begins. A value.
struct CatchUp: Equatable {
    private let live: Int64
    private let beganMs: Int64

    /// 90,000ths of a second in a millisecond.
    private static let ticks: Int64 = 90

    /// Nil if nothing is to be caught up.
    init?(first: Int64, live: Int64, nowMs: Int64) {
        guard first < live else { return nil }
        self.live = live
        self.beganMs = nowMs
    }

    /// Nil for pictures past live, which keep their own times.
    func time(of time: Int64, nowMs: Int64) -> Int64? { time < self.live ? self.live + (nowMs - self.beganMs) * Self.ticks : nil }
}
