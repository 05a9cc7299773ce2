/// The payload types in which a publisher sends, and what it takes for answers. A value.
package struct PublishFormats: Sendable, Equatable {
    /// Of H.264.
    package var video: UInt8?
    /// Of pictures that go out again (RFC 4588).
    package var repeats: UInt8?
    /// Of Opus.
    package var sound: UInt8?
    /// The client repeats what it is asked for.
    package var repeatsOnRequest = false
    /// The number of the header extension that counts packets of all tracks, if the client wants to know when they came.
    package var number: UInt8?

    package init(video: UInt8? = nil, repeats: UInt8? = nil, sound: UInt8? = nil, repeatsOnRequest: Bool = false, number: UInt8? = nil) {
        self.video = video
        self.repeats = repeats
        self.sound = sound
        self.repeatsOnRequest = repeatsOnRequest
        self.number = number
    }
}

/// What a publisher by WebRTC (WHIP, RFC 9725) and this server have agreed on. A value.
package struct PublishNegotiation: Sendable, Equatable {
    package let remote: RemoteTransport
    package private(set) var formats = PublishFormats()
    private let offer: SessionOffer
    private var acceptedVideo: (section: Int, format: SessionOffer.Format)? {
        self.videoSection.flatMap { section in
            self.offer.media[section].formats.first { $0.payloadType == self.formats.video }.map { (section, $0) }
        }
    }
    private var videoSection: Int?
    private var soundSection: Int?

    /// Throws what the client could do better.
    package init(_ offer: SessionOffer) throws(SessionDescriptionError) {
        self.offer = offer
        let sent = offer.media.indices.filter { index in
            let media = offer.media[index]
            return (media.kind == "video" || media.kind == "audio") && (media.direction == .sendonly || media.direction == .sendrecv)
        }
        guard let first = sent.first else {
            throw .unsupported("The offer has no m-line for video or sound that it sends (a=sendonly or a=sendrecv).")
        }
        let transport = offer.media[first]
        self.remote = try RemoteTransport(offer, transport)
        var numbers: Set<UInt8> = []
        for index in sent {
            let media = offer.media[index]
            guard index == first || offer.bundle.contains(media.mid) && offer.bundle.contains(transport.mid) else { continue }
            if media.kind == "video", self.videoSection == nil, let format = Self.video(of: media) {
                self.videoSection = index
                self.formats.video = format.payloadType
                self.formats.repeats =
                    media.formats.first { $0.codec == "rtx" && $0.parameter("apt") == "\(format.payloadType)" }?.payloadType
                self.formats.repeatsOnRequest = media.nacked.contains(format.payloadType)
                if media.reported.contains(format.payloadType), let number = media.transportNumber { numbers.insert(number) }
            } else if media.kind == "audio", self.soundSection == nil,
                let format = media.formats.first(where: { $0.codec == "opus" && $0.clockRate == 48_000 })
            {
                self.soundSection = index
                self.formats.sound = format.payloadType
                if media.reported.contains(format.payloadType), let number = media.transportNumber { numbers.insert(number) }
            }
        }
        guard self.videoSection != nil || self.soundSection != nil else {
            throw .unsupported(
                "The offer has none of the codecs that this server takes: H.264 and Opus. It has \(Negotiation.names(offer)).")
        }
        // Bundled sections share their numbers (RFC 8843 §9.2).
        if numbers.count == 1 { self.formats.number = numbers.first }
    }

    /// H.264 in the client's order, with several packets to a unit before one unit to a packet (RFC 6184 §5.4).
    private static func video(of media: SessionOffer.Media) -> SessionOffer.Format? {
        let formats = media.formats.filter { $0.codec == "h264" && $0.clockRate == 90_000 }
        return formats.first { $0.parameter("packetization-mode") == "1" }
            ?? formats.first { $0.parameter("packetization-mode") ?? "0" == "0" }
    }

    package var hasVideo: Bool { self.videoSection != nil }
    package var hasSound: Bool { self.soundSection != nil }
    package func offered() -> String { Negotiation.names(self.offer) }

    /// The answer's text. `session`: a number that tells it from others.
    package func answer(_ own: OwnTransport, session: UInt64) -> String {
        let accepted = [self.videoSection, self.soundSection].compactMap { $0 }.sorted()
        let mids = accepted.map { self.offer.media[$0].mid }.filter { !$0.isEmpty }
        var lines = own.head(session: session, mids: mids, offer: self.offer)
        for (index, media) in self.offer.media.enumerated() {
            let isFirst = index == accepted.first
            if index == self.videoSection, let format = self.acceptedVideo?.format {
                lines += own.lines(
                    media, types: [format.payloadType] + (self.formats.repeats.map { [$0] } ?? []), for: self.remote, isFirst: isFirst)
                lines += self.common(media, format.payloadType)
                lines.append("a=rtpmap:\(format.payloadType) H264/90000")
                if !format.parameters.isEmpty { lines.append("a=fmtp:\(format.payloadType) \(format.parameters)") }
                if self.formats.repeatsOnRequest { lines.append("a=rtcp-fb:\(format.payloadType) nack") }
                lines.append("a=rtcp-fb:\(format.payloadType) nack pli")
                if let repeats = self.formats.repeats {
                    lines += ["a=rtpmap:\(repeats) rtx/90000", "a=fmtp:\(repeats) apt=\(format.payloadType)"]
                }
            } else if index == self.soundSection, let type = self.formats.sound {
                lines += own.lines(media, types: [type], for: self.remote, isFirst: isFirst)
                lines += self.common(media, type)
                // With repair of lost packets within the next ones, and in stereo if it is so.
                lines += ["a=rtpmap:\(type) opus/48000/2", "a=fmtp:\(type) minptime=10;useinbandfec=1;stereo=1"]
            } else {
                lines += OwnTransport.rejection(of: media)
                continue
            }
            if isFirst { lines += own.candidateLines }
        }
        return lines.joined(separator: "\r\n") + "\r\n"
    }

    private func common(_ media: SessionOffer.Media, _ type: UInt8) -> [String] {
        var lines = ["a=recvonly", "a=rtcp-mux"]
        if let number = self.formats.number, media.reported.contains(type), media.transportNumber == number {
            lines += ["a=extmap:\(number) \(SessionOffer.transportNumberURI)", "a=rtcp-fb:\(type) transport-cc"]
        }
        return lines
    }
}
