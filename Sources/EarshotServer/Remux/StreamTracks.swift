import FFmpeg
import Media

/// Which tracks a stream has at present: their headers, and whether each brings anything.
struct StreamTracks {
    private let format: FragmentMuxer.Format
    /// A kind of media that has been away for so long, and for much longer than it ever was, is no track any more. Milliseconds.
    private let awayMs: Int64
    private(set) var video: Track?
    private(set) var audio: Track?
    /// Sound that could not be transcoded: the pictures go on without it.
    private var refusedAudio: Track?
    private var announced = AnnouncedTracks()
    private var pictures = TrackPresence()
    private var sounds = TrackPresence()
    /// Samples of sound since the last picture, or since the run began.
    var soundsSincePicture = 0

    /// So many samples of sound without a picture, and it is the sound that leads.
    static let awaySamples = 32

    init(_ format: FragmentMuxer.Format, awayMs: Int64) {
        self.format = format
        self.awayMs = awayMs
    }

    // MARK: Headers

    mutating func takeMetadata(_ frame: Frame) {
        if let announced = AnnouncedTracks(frame) { self.announced = announced }
    }

    /// What the metadata announces is not there yet.
    func lacksAnnounced(hasSound: Bool) -> Bool {
        self.video == nil && self.announced.hasVideo || !hasSound && self.announced.hasAudio
    }

    /// A header that changes what the muxer was told.
    struct Change {
        /// What is to be said of it.
        let problem: String?
    }

    /// Takes a header. A change ends a run that has this kind of media; one of a kind that the run does not have changes nothing yet.
    mutating func take(_ frame: Frame) -> Change? {
        let known = frame.kind == .video ? self.video : self.audio
        // Of codecs without headers every frame describes the track: one is enough.
        guard frame.isSequenceHeader || known == nil || known?.codec != frame.tag.codec, Track.describes(frame) else { return nil }
        let track: Track
        do throws(FFmpegError) {
            track = try Track(frame)
        } catch {
            // What was written is good; what follows a header that cannot be read is not. FFmpeg sends an empty one before AV1's.
            return Change(problem: "\(error)")
        }
        guard track != known, track != self.refusedAudio else { return nil }
        let isCarried = track.needsTranscode || track.isSupported(in: self.format)
        if frame.kind == .video { self.video = isCarried ? track : nil } else { self.audio = isCarried ? track : nil }
        return Change(problem: isCarried ? nil : "\(track.codecsString) is not carried in \(self.format)")
    }

    /// The present sound is done without.
    mutating func refuseAudio() {
        self.refusedAudio = self.audio
        self.audio = nil
    }

    // MARK: Presence

    mutating func notePresence(of sample: Sample) {
        let newestMs = max(self.pictures.newestMs ?? .min, self.sounds.newestMs ?? .min)
        if newestMs > .min, sample.dts - newestMs >= self.awayMs {
            self.pictures.skip(sample.dts - newestMs)
            self.sounds.skip(sample.dts - newestMs)
        }
        if sample.kind == .video {
            self.pictures.note(sample.dts, beside: self.sounds.newestMs)
            self.soundsSincePicture = 0
        } else {
            self.sounds.note(sample.dts, beside: self.pictures.newestMs)
            self.soundsSincePicture += 1
        }
    }

    mutating func forgetTimes() {
        self.pictures.forgetTime()
        self.sounds.forgetTime()
    }

    /// Which tracks there are from this sample on, if others than the run had: a camera or a microphone was switched on or off. Pictures
    /// come with a keyframe, and so does sound to them.
    func change(at sample: Sample, hadVideo: Bool, hadAudio: Bool) -> (hasVideo: Bool, hasAudio: Bool)? {
        if sample.kind == .video {
            guard sample.isKeyframe, self.video != nil else { return nil }
            let hasAudio = self.audio != nil && self.sounds.isThere(at: sample.dts, awayMs: self.awayMs)
            return hadVideo && hasAudio == hadAudio ? nil : (true, hasAudio)
        }
        guard hadVideo, self.audio != nil, self.soundsSincePicture >= Self.awaySamples else { return nil }
        return self.pictures.isThere(at: sample.dts, awayMs: self.awayMs) ? nil : (false, true)
    }
}
