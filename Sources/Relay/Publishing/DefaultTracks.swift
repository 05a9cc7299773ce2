import Media

/// Which track of each kind viewers get who do not know Multitrack, in a message of its own. A value, owned by the stream's state.
///
/// Track 0 has the highest priority (Enhanced RTMP v2, "Multitrack"); a message that is not Multitrack is track 0. A kind without it has its
/// lowest track. Costs nothing in a stream without Multitrack, except at its sequence headers.
///
/// ```
/// plain header ───────────────► .plain          its messages are for all viewers; Multitrack ones are for those who know it
/// Multitrack header ──────────► .track(lowest)  each message with that track is sent in both forms, the single one first
/// ```
struct DefaultTracks: Sendable {
    private enum Source: Sendable, Equatable {
        case plain
        case track(UInt8)
    }

    private var video: Source?
    private var audio: Source?
    /// Tracks of the kind's Multitrack headers.
    private var videoTracks = TrackSet()
    private var audioTracks = TrackSet()

    /// Notes a sequence header of the present publisher.
    mutating func note(_ header: Frame) {
        switch header.kind {
        case .video:
            self.video = Self.source(self.video, with: header)
            Self.note(header, in: &self.videoTracks)
        case .audio:
            self.audio = Self.source(self.audio, with: header)
            Self.note(header, in: &self.audioTracks)
        case .data: break
        }
    }

    /// Whether the message has only tracks that viewers without Multitrack do not get. Figures do not count those.
    func isSide(_ frame: Frame) -> Bool {
        guard frame.tag.flags.contains(.multitrack) else { return false }
        let source = frame.kind == .video ? self.video : self.audio
        switch source {
        case .plain?: return true
        case .track(let id)?: return Self.lowestTrack(of: frame).map { $0 > id } ?? true
        case nil: return false
        }
    }

    /// The default track of a Multitrack message in a message of its own, if it has one, and the message for those who know Multitrack. Without
    /// the default track it is no keyframe: viewers begin where the default track does.
    func split(_ frame: Frame) -> (single: Frame?, whole: Frame) {
        let source = frame.kind == .video ? self.video : self.audio
        return Self.split(frame, from: source ?? Self.source(nil, with: frame))
    }

    /// Whether a Multitrack header of the kind has this track.
    func has(_ id: UInt8, _ kind: Frame.Kind) -> Bool { (kind == .video ? self.videoTracks : self.audioTracks).contains(id) }

    /// A frame that goes out, in either form, as viewers get it who chose this track, which is not 0: the track alone where the kind has it, otherwise
    /// what others get who do not know Multitrack. Nil: they do not get the frame.
    func chosen(_ frame: Frame, _ id: UInt8) -> Frame? {
        guard frame.kind != .data else { return frame }
        if self.has(id, frame.kind) { return frame.tag.flags.contains(.multitrack) ? Self.single(frame, id) : nil }
        guard !frame.tag.flags.contains(.multitrack) else { return nil }
        var whole = frame
        whole.tag.flags.remove(.singleTrack)
        return whole
    }

    /// The default track alone of a header with these tracks; nil for headers of other tracks, which cost next to nothing.
    func single(of header: Frame, with tracks: TrackSet) -> Frame? {
        let source = header.kind == .video ? self.video : self.audio
        guard header.tag.flags.contains(.multitrack), case .track(let id)? = source, tracks.contains(id) else { return nil }
        return Self.split(header, from: source).single
    }

    /// The same, and what earlier headers tell of kinds whose header the present publisher has not sent.
    func completed(by headers: [Frame]) -> DefaultTracks {
        var completed = self
        for header in headers where header.isSequenceHeader && (header.kind == .video ? self.video : self.audio) == nil {
            completed.note(header)
        }
        return completed
    }

    private static func split(_ frame: Frame, from source: Source?) -> (single: Frame?, whole: Frame) {
        if case .track(let id)? = source, var single = Self.single(frame, id) {
            single.tag.flags.insert(.singleTrack)
            return (single, frame)
        }
        var whole = frame
        whole.tag.flags.remove(.keyframe)
        return (nil, whole)
    }

    private static func single(_ frame: Frame, _ id: UInt8) -> Frame? {
        do throws(MediaError) {
            return try frame.single(track: id)
        } catch {
            // A message with broken tracks is relayed as it came, to those who know Multitrack.
            return nil
        }
    }

    private static func note(_ header: Frame, in known: inout TrackSet) {
        guard header.tag.flags.contains(.multitrack) else { return }
        do throws(MediaError) {
            var tracks = try TrackIterator(header.kind, header.payload)
            while let track = try tracks.next() { known.insert(track.id) }
        } catch {
            // Those before the broken one are known; nobody needs the others.
            return
        }
    }

    private static func source(_ known: Source?, with frame: Frame) -> Source? {
        guard frame.tag.flags.contains(.multitrack) else { return .plain }
        guard let lowest = self.lowestTrack(of: frame) else { return known }
        switch known {
        // The newest header of track 0 counts.
        case .plain?: return lowest == 0 ? .track(0) : .plain
        case .track(let id)?: return .track(min(id, lowest))
        case nil: return .track(lowest)
        }
    }

    /// Nil when the message's tracks are broken.
    private static func lowestTrack(of frame: Frame) -> UInt8? {
        do throws(MediaError) {
            var tracks = try TrackIterator(frame.kind, frame.payload)
            var lowest: UInt8?
            while let track = try tracks.next() { lowest = min(lowest ?? track.id, track.id) }
            return lowest
        } catch {
            return nil
        }
    }
}
