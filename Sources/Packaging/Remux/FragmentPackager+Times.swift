/// How long a packager waits for media, and which breaks of the timeline restart it.
extension FragmentPackager {
    /// How long to wait for a second kind of media, by timestamps; longer when metadata announces it. A header is not enough: a track
    /// without samples stalls players.
    static let settleMs: Int64 = 800
    static let announcedMs: Int64 = 1_000
    /// Usual duration of an audio frame. Milliseconds.
    static let usualSoundMs: Int64 = 24
    /// Longest hold of sound for a keyframe. Milliseconds.
    static let lateSoundMs: Int64 = 30_000
    /// A longer gap between two runs is closed: MediaSource stops before a hole. Milliseconds.
    static let holeMs: Int64 = 200
    /// How long to wait for pictures that a header announces, since some cameras are slow. Milliseconds, by timestamps.
    static let noPictureMs: Int64 = 2_000
    /// After this long without pictures, and ``StreamTracks/awaySamples``, sound ends the pieces. Milliseconds, by timestamps.
    static let awayMs: Int64 = 1_000
    /// Larger distances from the previous timestamps break the timeline. Milliseconds.
    static let leapMs = (back: Int64(10_000), ahead: Int64(60_000))
}
