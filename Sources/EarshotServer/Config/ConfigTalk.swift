package import Rooms

extension ServerConfig {
    /// The talk channels of rooms.
    package struct Talk: Sendable, Equatable {
        /// What a room's channel begins with.
        package var settings = TalkSettings()
        /// The floor is taken back from somebody who sends nothing for so long, in mode ptt.
        package var idleMs: Int64 = 2_000
        /// Also in rooms that have not been live yet.
        package var always = false
        /// Bits per second of a mix.
        package var bitRate = 64_000
        /// A listener further behind than this loses what it has not heard.
        package var maxQueueMs: Int64 = 500
        package init() {}
    }
}
