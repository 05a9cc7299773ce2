extension Machine {
    /// The game that is offered or played. A value; a machine without one is idle.
    package struct Turn: Sendable, Equatable {
        package enum Phase: String, Sendable, CaseIterable { case offered, playing, settling }

        package internal(set) var phase: Phase
        /// The member's id.
        package let player: String
        /// The turn's id; only its player and the device know it.
        package let uuid: String
        /// The end of the phase as sent to members. Milliseconds since 1970.
        package internal(set) var promisedMs: Int64
        /// When the server ends the phase: later than promised by ``MachineLimits/slackMs``, where that applies. Milliseconds since 1970.
        package internal(set) var deadlineMs: Int64
        /// Whether the player has left the queue or the room, while the claw is still on its way.
        package internal(set) var isLeft = false
        /// Whether the server was restarted since the phase began: the next input ends the game.
        package internal(set) var isInterrupted = false
    }

    /// Why a game is over.
    package enum Ending: String, Sendable { case result, noResult, playerLeft, deviceGone, serverRestart, ended }
}
