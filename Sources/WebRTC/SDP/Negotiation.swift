/// What one viewer and this server have agreed on. A value.
package struct Negotiation: Sendable, Equatable {
    package struct Video: Sendable, Equatable {
        package let payloadType: UInt8
        package let profile: VideoProfile
        /// The payload type of its repeats (RFC 4588).
        package let repeats: UInt8?
        fileprivate let format: SessionOffer.Format
    }

    package enum Sound: UInt8, Sendable, CaseIterable { case opus = 1, pcmu, pcma }

    /// What pictures may be sent in, in the client's order.
    package private(set) var video: [Video] = []
    package private(set) var sound: [Sound: UInt8] = [:]
    package let remote: RemoteTransport
    /// Whether the peer says which packets it lacks.
    package private(set) var repeatsOnRequest = false
    /// The number of the header extension by which the peer reports each packet, where it does.
    package private(set) var videoNumber: UInt8?
    package private(set) var soundNumber: UInt8?
    /// The number of the header extension by which pictures are held back, where the peer knows it.
    package private(set) var delayNumber: UInt8?
    private var offer: SessionOffer
    private var acceptedVideo: Int?
    private var acceptedSound: Int?

    /// Throws what the client could do better.
    package init(_ offer: SessionOffer) throws(SessionDescriptionError) {
        self.offer = offer
        let wanted = offer.media.indices.filter { index in
            let media = offer.media[index]
            return (media.kind == "video" || media.kind == "audio") && media.direction != .sendonly && media.direction != .inactive
        }
        guard let first = wanted.first else {
            throw .unsupported("The offer has no m-line for video or sound that it wants to receive (a=recvonly or a=sendrecv).")
        }
        let transport = offer.media[first]
        self.remote = try RemoteTransport(offer, transport)
        for index in wanted {
            let media = offer.media[index]
            // All on one transport (RFC 9143); what is not in the bundle has none.
            guard index == first || offer.bundle.contains(media.mid) && offer.bundle.contains(transport.mid) else { continue }
            if media.kind == "video", self.acceptedVideo == nil {
                self.accept(Self.formats(of: media), at: index)
            } else if media.kind == "audio", self.acceptedSound == nil {
                for format in media.formats {
                    switch (format.codec, format.clockRate) {
                    case ("opus", 48_000) where self.sound[.opus] == nil: self.sound[.opus] = format.payloadType
                    case ("pcmu", 8_000) where self.sound[.pcmu] == nil: self.sound[.pcmu] = format.payloadType
                    case ("pcma", 8_000) where self.sound[.pcma] == nil: self.sound[.pcma] = format.payloadType
                    default: break
                    }
                }
                self.acceptedSound = self.sound.isEmpty ? nil : index
                self.soundNumber = media.reported.isDisjoint(with: self.sound.values) ? nil : media.transportNumber
            }
        }
        guard self.acceptedVideo != nil || self.acceptedSound != nil else {
            throw .unsupported(
                "The offer has none of the codecs that this server sends: H.264 with packetization-mode=1, H.265, VP9, AV1, Opus, PCMU, PCMA."
                    + " It has \(Self.names(offer)).")
        }
    }

    private mutating func accept(_ formats: [Video], at index: Int) {
        let media = self.offer.media[index]
        self.video = formats
        self.acceptedVideo = formats.isEmpty ? nil : index
        self.repeatsOnRequest = formats.contains { media.nacked.contains($0.payloadType) }
        let isReported = !formats.isEmpty && formats.allSatisfy { media.reported.contains($0.payloadType) }
        self.videoNumber = isReported ? media.transportNumber : nil
        self.delayNumber = formats.isEmpty ? nil : media.delayNumber
    }

    /// Leaves the formats for a stream of this profile alone: some clients are ready for the first one of an answer only. Returns false, and changes nothing,
    /// if there is none.
    package mutating func narrow(to profile: VideoProfile) -> Bool {
        guard let index = self.acceptedVideo else { return false }
        let formats = self.video.filter { $0.profile.decodes(profile) }
        guard !formats.isEmpty else { return false }
        self.accept(formats, at: index)
        return true
    }

    package var hasVideo: Bool { self.acceptedVideo != nil }
    package var hasSound: Bool { self.acceptedSound != nil }
    /// The client asks for video, whatever its codecs.
    package var wantsVideo: Bool {
        self.offer.media.contains { $0.kind == "video" && $0.direction != .sendonly && $0.direction != .inactive }
    }
    /// The codecs of the offer, for messages: at most twelve. `kind`: those of one kind of media alone.
    package func offered(_ kind: String? = nil) -> String { Self.names(self.offer, kind) }

    static func names(_ offer: SessionOffer, _ kind: String? = nil) -> String {
        var names: [String] = []
        for format in offer.media.filter({ kind == nil || $0.kind == kind }).flatMap(\.formats)
        where !format.codec.isEmpty && !["rtx", "red", "ulpfec", "flexfec-03"].contains(format.codec) {
            let name = String(format.codec.filter { $0.isLetter || $0.isNumber || $0 == "-" })
            if !names.contains(name), names.count < 12 { names.append(name) }
        }
        return names.isEmpty ? "no codec" : names.joined(separator: ", ")
    }

    private static func formats(of media: SessionOffer.Media) -> [Video] {
        var repeats: [String: UInt8] = [:]
        for format in media.formats where format.codec == "rtx" {
            if let of = format.parameter("apt"), repeats[of] == nil { repeats[of] = format.payloadType }
        }
        return media.formats.compactMap { format in
            guard format.clockRate == 90_000, let profile = Self.profile(of: format) else { return nil }
            return Video(payloadType: format.payloadType, profile: profile, repeats: repeats[String(format.payloadType)], format: format)
        }
    }

    /// Nil for a format that this server does not send.
    private static func profile(of format: SessionOffer.Format) -> VideoProfile? {
        func number(_ name: String, else usual: UInt8) -> UInt8? { format.parameter(name).map { UInt8($0) } ?? usual }
        switch format.codec {
        case "h264" where format.parameter("packetization-mode") == "1":
            // RFC 6184 §8.1: without the parameter it is Baseline at level 1.
            return .h264(
                format.parameter("profile-level-id").flatMap { H264Profile(levelID: $0) } ?? H264Profile(idc: 66, constraints: 0))
        // RFC 7798 §7.1: all on one stream, of Main where nothing else is said.
        case "h265" where format.parameter("tx-mode") ?? "SRST" == "SRST": return number("profile-id", else: 1).map { .h265($0) }
        case "vp9": return number("profile-id", else: 0).map { .vp9($0) }
        case "av1": return number("profile", else: 0).map { .av1($0) }
        default: return nil
        }
    }

    /// The format in which a stream of this profile is sent: the same one, or another one that covers it. Of H.264 the least that does, or the best that
    /// there is.
    package func format(for profile: VideoProfile) -> Video? {
        if let same = self.video.first(where: { $0.profile == profile }) { return same }
        let fit = self.video.filter { $0.profile.decodes(profile) }
        guard case .h264(let wanted) = profile else { return fit.first }
        func rank(_ video: Video) -> Int { if case .h264(let profile) = video.profile { profile.rank } else { 0 } }
        let same = fit.first { $0.profile.number == wanted.idc && rank($0) == wanted.rank }
        return same ?? fit.filter { rank($0) >= wanted.rank }.min { rank($0) < rank($1) } ?? fit.max { rank($0) < rank($1) }
    }

    // MARK: The answer

    /// What the server sends.
    package struct Own: Sendable {
        package var transport: OwnTransport
        package var videoSource: UInt32
        package var repeatSource: UInt32
        package var soundSource: UInt32

        package init(_ transport: OwnTransport, videoSource: UInt32, repeatSource: UInt32, soundSource: UInt32) {
            self.transport = transport
            self.videoSource = videoSource
            self.repeatSource = repeatSource
            self.soundSource = soundSource
        }
    }

    /// The answer's text. `session`: a number that tells it from others.
    package func answer(_ own: Own, session: UInt64) -> String {
        let accepted = [self.acceptedVideo, self.acceptedSound].compactMap { $0 }.sorted()
        let mids = accepted.map { self.offer.media[$0].mid }.filter { !$0.isEmpty }
        var lines = own.transport.head(session: session, mids: mids, offer: self.offer)
        for (index, media) in self.offer.media.enumerated() {
            if index == self.acceptedVideo {
                lines += self.section(media, self.videoLines(media, own), own, hasTransport: index == accepted.first)
            } else if index == self.acceptedSound {
                lines += self.section(media, self.soundLines(media, own), own, hasTransport: index == accepted.first)
            } else {
                lines += OwnTransport.rejection(of: media)
            }
        }
        return lines.joined(separator: "\r\n") + "\r\n"
    }

    private func section(
        _ media: SessionOffer.Media, _ formats: (types: [UInt8], lines: [String]), _ own: Own, hasTransport: Bool
    ) -> [String] {
        var lines = own.transport.lines(media, types: formats.types, for: self.remote, isFirst: hasTransport)
        // RFC 8830 §2, beside the older form at the sources.
        lines += ["a=msid:\(Self.canonicalName) \(media.kind)", "a=sendonly", "a=rtcp-mux"]
        if let number = media.kind == "video" ? self.videoNumber : self.soundNumber {
            lines.append("a=extmap:\(number)\(media.takesNumberOnly ? "/sendonly" : "") \(SessionOffer.transportNumberURI)")
            for type in formats.types where media.reported.contains(type) { lines.append("a=rtcp-fb:\(type) transport-cc") }
        }
        if media.kind == "video", let number = self.delayNumber {
            lines.append("a=extmap:\(number)\(media.takesDelayOnly ? "/sendonly" : "") \(SessionOffer.delayURI)")
        }
        lines += formats.lines
        return hasTransport ? lines + own.transport.candidateLines : lines
    }

    private func videoLines(_ media: SessionOffer.Media, _ own: Own) -> (types: [UInt8], lines: [String]) {
        var types: [UInt8] = []
        var lines: [String] = []
        for video in self.video {
            types.append(video.payloadType)
            lines.append("a=rtpmap:\(video.payloadType) \(video.profile.codec.name)/90000")
            if !video.format.parameters.isEmpty { lines.append("a=fmtp:\(video.payloadType) \(video.format.parameters)") }
            if media.nacked.contains(video.payloadType) { lines.append("a=rtcp-fb:\(video.payloadType) nack") }
            lines.append("a=rtcp-fb:\(video.payloadType) nack pli")
            if let repeats = video.repeats {
                types.append(repeats)
                lines += ["a=rtpmap:\(repeats) rtx/90000", "a=fmtp:\(repeats) apt=\(video.payloadType)"]
            }
        }
        let hasRepeats = self.video.contains { $0.repeats != nil }
        if hasRepeats { lines.append("a=ssrc-group:FID \(own.videoSource) \(own.repeatSource)") }
        lines += Self.source(own.videoSource, "video")
        if hasRepeats { lines += Self.source(own.repeatSource, "video") }
        return (types, lines)
    }

    private func soundLines(_ media: SessionOffer.Media, _ own: Own) -> (types: [UInt8], lines: [String]) {
        var types: [UInt8] = []
        var lines: [String] = []
        if let opus = self.sound[.opus] {
            types.append(opus)
            lines += ["a=rtpmap:\(opus) opus/48000/2", "a=fmtp:\(opus) minptime=10;stereo=1;sprop-stereo=1"]
        }
        if let type = self.sound[.pcmu] {
            types.append(type)
            lines.append("a=rtpmap:\(type) PCMU/8000")
        }
        if let type = self.sound[.pcma] {
            types.append(type)
            lines.append("a=rtpmap:\(type) PCMA/8000")
        }
        return (types, lines + Self.source(own.soundSource, "audio"))
    }

    /// One name for both tracks, so that clients play them in step (RFC 7022, RFC 8830).
    static let canonicalName = "earshot"

    private static func source(_ source: UInt32, _ track: String) -> [String] {
        ["a=ssrc:\(source) cname:\(Self.canonicalName)", "a=ssrc:\(source) msid:\(Self.canonicalName) \(track)"]
    }
}
