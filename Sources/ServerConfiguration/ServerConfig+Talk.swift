package import Rooms

extension ServerConfig {
    /// The talk channels of rooms.
    package struct Talk: Sendable, Equatable {
        /// Initial settings of a room's channel.
        package var settings = TalkSettings()
        /// How long a floor holder may send nothing before it loses the floor, in mode ptt.
        package var idleMs: Int64 = 2_000
        /// Also opens the channel in rooms that have not been live yet.
        package var always = false
        /// Bits per second of a mix.
        package var bitRate = 64_000
        /// A listener further behind than this skips to new audio.
        package var maxQueueMs: Int64 = 500
    }
}
