package import NIOCore

/// How long a cache may keep an answer.
package struct CacheAdvice: Sendable, Equatable {
    package let maxAgeSeconds: Int
    /// The bytes under this name never change.
    package let isImmutable: Bool

    /// For Cache-Control (RFC 9111 §5.2.2, RFC 8246). The caller decides whether shared caches may keep it.
    package var directives: String { self.isImmutable ? "max-age=\(self.maxAgeSeconds), immutable" : "max-age=\(self.maxAgeSeconds)" }
}

/// A named piece of media.
package struct Resource: Sendable, Equatable {
    /// The bytes, in order.
    package let pieces: [ByteBuffer]
    package let contentType: String
    package let cache: CacheAdvice

    package var byteCount: Int { self.pieces.reduce(0) { $0 + $1.readableBytes } }
}

/// The result of looking up a name.
package enum ResourceLookup: Sendable, Equatable {
    case found(Resource)
    /// The hinted part, which does not exist yet. Answer with the whole part once it does (RFC 8216bis §6.2.6); ask again at each new
    /// `version`.
    case pending
    /// No longer held, or hinted but never made: 404 or 410.
    case gone
    /// 404.
    case unknown
}

extension MediaWindow {
    /// Finds media by its name: the URI's last path component without its query.
    package func resource(named name: String) -> ResourceLookup {
        guard let (kind, number) = self.parse(name: name) else { return .unknown }
        switch kind {
        case .initialization:
            if let found = self.initializations.first(where: { $0.number == number }) { return self.found([found.bytes], kind) }
            return number < self.nextInitialization ? .gone : .unknown
        case .segment:
            guard number <= self.lastEnded, number >= self.firstSequence else { return .unknown }
            guard let segment = self.heldSegment(number) else { return .gone }
            return self.found(segment.parts.map(\.bytes), kind)
        case .part:
            guard self.configuration.isLowLatency else { return .unknown }
            if number == self.hintedPart { return .pending }
            if self.isInterrupted, number == self.nextPart { return .gone }
            guard number < self.nextPart else { return .unknown }
            guard let part = self.heldPart(number) else { return .gone }
            return self.found([part.bytes], kind)
        }
    }

    /// Cache advice for the answer to a playlist request, whether a playlist or an error. RFC 8216bis, Appendix B, for caches in front of a
    /// low-latency server: a blocking answer is final, any other is soon stale.
    package func cacheAdvice(for request: PlaylistRequest, succeeded: Bool = true) -> CacheAdvice {
        let target = max(self.targetDuration, 1)
        let isBlocking = request.isBlocking && self.configuration.isLowLatency && self.isReady
        let seconds = succeeded ? (isBlocking ? target * 6 : target / 2) : (isBlocking ? target * 4 : target)
        return CacheAdvice(maxAgeSeconds: seconds, isImmutable: false)
    }

    /// Number of the next part, which playlists hint.
    var hintedPart: Int? { self.hasEnded || self.isInterrupted || self.format == nil ? nil : self.nextPart }

    func name(ofInitialization number: Int) -> String { "\(self.epoch)-i\(number).mp4" }
    func name(ofSegment sequence: Int) -> String { "\(self.epoch)-s\(sequence).\(self.configuration.container.mediaExtension)" }
    /// Names a part. Numbers run across segments, so that a hint stays right if the expected segment ends first.
    func name(ofPart number: Int) -> String { "\(self.epoch)-p\(number).\(self.configuration.container.mediaExtension)" }

    private enum ResourceKind: UInt8 {
        case initialization = 0x69  // i
        case segment = 0x73  // s
        case part = 0x70  // p
    }

    /// Parses `<epoch>-<kind><number>.<extension>`, and accepts only our exact spelling.
    private func parse(name: String) -> (ResourceKind, Int)? {
        let bytes = name.utf8
        guard bytes.count <= 64 else { return nil }
        var rest = bytes[...]
        guard rest.starts(with: self.epoch.utf8) else { return nil }
        rest = rest.dropFirst(self.epoch.utf8.count)
        guard rest.popFirst() == UInt8(ascii: "-"), let kind = rest.popFirst().flatMap(ResourceKind.init(rawValue:)) else { return nil }
        let digits = rest.prefix { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
        guard let number = Int(String(Substring(digits))) else { return nil }
        let expected =
            switch kind {
            case .initialization: self.name(ofInitialization: number)
            case .segment: self.name(ofSegment: number)
            case .part: self.name(ofPart: number)
            }
        return expected == name ? (kind, number) : nil
    }

    private func found(_ pieces: [ByteBuffer], _ kind: ResourceKind) -> ResourceLookup {
        let target = self.targetDuration
        // §6.2.2: the expiry reflects the planned time to live. Initialization sections may serve as long as the stream lasts.
        let seconds =
            switch kind {
            case .initialization: max(3_600, self.configuration.windowMs / 1_000)
            case .segment: self.configuration.windowMs / 1_000 + self.configuration.lingerMs / 1_000 + target
            case .part: target * 6
            }
        let contentType =
            switch self.configuration.container {
            case .mpegTS: "video/mp2t"
            case .fragmentedMP4: self.format?.hasVideo == false ? "audio/mp4" : "video/mp4"
            }
        return .found(
            Resource(pieces: pieces, contentType: contentType, cache: CacheAdvice(maxAgeSeconds: max(seconds, 1), isImmutable: true)))
    }

    private func heldSegment(_ sequence: Int) -> Segment? {
        guard let first = self.segments.first?.sequence, sequence >= first, sequence - first < self.segments.count else { return nil }
        return self.segments[offset: sequence - first]
    }

    private func heldPart(_ number: Int) -> HeldPart? {
        if let open = self.open, number >= open.firstPart {
            let index = number - open.firstPart
            return index < open.parts.count ? open.parts[index] : nil
        }
        // Find the last segment that starts at or before `number`.
        var low = 0
        var high = self.segments.count
        while low < high {
            let middle = (low + high) / 2
            let segment = self.segments[offset: middle]
            if segment.firstPart <= number { low = middle + 1 } else { high = middle }
        }
        guard low > 0 else { return nil }
        let segment = self.segments[offset: low - 1]
        let index = number - segment.firstPart
        return index < segment.parts.count ? segment.parts[index] : nil
    }
}
