import FFmpeg
import Media

/// The present tracks of a stream: their headers, and whether samples arrive.
struct StreamTracks {
    private let format: ContainerFormat
    /// A kind absent for this long, and longer than its usual pauses, is no track. Milliseconds.
    private let awayMs: Int64
    private(set) var video: Track?
    private(set) var audio: Track?
    /// Sound that could not be transcoded; the pictures continue without it.
    private var refusedAudio: Track?
    /// Why there is no track, though there is media for one.
    private var causes: (video: String?, audio: String?)
    private var announced = AnnouncedTracks()
    private var pictures = TrackPresence()
    private var sounds = TrackPresence()
    /// Samples of sound since the last picture, or since the run began.
    var soundsSincePicture = 0

    /// After this many samples of sound without a picture, sound may lead.
    static let awaySamples = 32

    init(_ format: ContainerFormat, awayMs: Int64) {
        self.format = format
        self.awayMs = awayMs
    }

    // MARK: Headers

    mutating func receiveMetadata(_ frame: Frame) {
        if let announced = AnnouncedTracks(frame) { self.announced = announced }
    }

    /// Whether announced media has not arrived yet.
    func lacksAnnounced(hasSound: Bool) -> Bool {
        self.video == nil && self.announced.hasVideo || !hasSound && self.announced.hasAudio
    }

    /// Whether the metadata excludes video and none has come.
    var isSoundAlone: Bool { self.video == nil && self.announced.excludesVideo }

    /// A header that differs from the muxer's, or cannot be read.
    struct Change {
        /// The problem to log, if any.
        let problem: String?
    }

    /// Processes a header. A change ends a run that has this kind of media; for other runs it changes nothing yet.
    mutating func receive(_ frame: Frame) -> Change? {
        let known = frame.kind == .video ? self.video : self.audio
        // Codecs without headers describe the track in every frame: one is enough.
        guard frame.isSequenceHeader || known == nil || known?.codec != frame.tag.codec, Track.describes(frame) else { return nil }
        let track: Track
        do throws(FFmpegError) {
            track = try Track(frame)
        } catch {
            // Samples before an unreadable header are good, those after it are not. FFmpeg sends an empty header before AV1's.
            if known == nil { self.note("\(error)", frame.kind) }
            return Change(problem: "\(error)")
        }
        guard track != known, track != self.refusedAudio else { return nil }
        let isCarried = track.needsTranscodeToPlay(in: self.format) || track.isSupported(in: self.format)
        if frame.kind == .video { self.video = isCarried ? track : nil } else { self.audio = isCarried ? track : nil }
        let problem = isCarried ? nil : "\(track.codecName) is not carried in \(self.format.name)"
        self.note(problem, frame.kind)
        return Change(problem: problem)
    }

    private mutating func note(_ cause: String?, _ kind: Frame.Kind) {
        if kind == .video { self.causes.video = cause } else { self.causes.audio = cause }
    }

    /// Why samples of this kind are left out; nil: they are not, or there is no header yet.
    func refusal(of kind: Frame.Kind) -> String? { kind == .video ? self.causes.video : self.causes.audio }

    /// Leaves out the present audio track.
    mutating func refuseAudio(_ cause: String) {
        self.refusedAudio = self.audio
        self.audio = nil
        self.causes.audio = cause
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

    /// The tracks from this sample on, if they differ from the run's. A camera or microphone was switched on or off. Pictures start at a
    /// keyframe, and so does sound beside them.
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
