package import FFmpeg
package import Media

/// Decodes the sound of a stream to one channel, even if its track changes. Owned by the receiver of the frames.
package struct TrackDecoder: ~Copyable {
    private var track: Track?
    private var decoder: AudioDecoder?
    private let resampler = Resampler(channels: 1)

    package init() {}

    /// The sound in a frame. Empty for other kinds of frames, for frames that describe the track, and before the first of those.
    package mutating func decode(_ frame: Frame) throws(FFmpegError) -> [PCM] {
        guard frame.kind == .audio else { return [] }
        if Track.describes(frame) {
            let track = try Track(frame)
            if track != self.track {
                self.decoder = try AudioDecoder(track)
                self.track = track
            }
        }
        guard let sample = Sample(frame), let decoder = self.decoder else { return [] }
        var sound: [PCM] = []
        for run in try decoder.decode(sample.payload) { sound.append(try self.resampler.convert(run)) }
        return sound
    }
}
