import HTTPAPI

/// The schemas of events in classes and of claw machines.
extension EventData {
    static let memberRole = Self.form(
        "MemberRoleData", Self.room(),
        [
            .always("userId", .text, "The member."),
            .always("role", .words(["assistant", "teacher", "student", "audience"]), "The role now."),
        ])

    static let assistantTransferred = Self.form(
        "AssistantTransferredData", Self.room(),
        [.always("from", .text, "The assistant until now."), .always("to", .text, "The assistant from now on.")])

    static let deviceChanged = Self.form(
        "DeviceChangedData", Self.room(),
        [
            .always("userId", .text, "The member."), .always("track", .words(["camera", "microphone"]), "What was switched."),
            .always("isOn", .flag, "Whether it is on."),
        ])

    static let displayChanged = Self.form(
        "DisplayChangedData", Self.room(), [.always("display", .text, "What is shown, as its clients write it; empty: nothing.")])

    static let board = Self.form(
        "BoardData", Self.room(),
        [
            .always("boardId", .text, "The whiteboard."), .always("name", .text, "Its name."),
            .always("page", .natural, "The page that it shows."),
        ])

    /// Each turn of a player has an id of its own.
    private static let turnParts: [Schema.Property] = [
        .always("player", .text, "The player."), .always("uuid", .text, "The turn's id."),
    ]

    static let turn = Self.form("TurnData", Self.room(), Self.turnParts)

    static let gameDropped = Self.form(
        "GameDroppedData", Self.room(), Self.turnParts, [.always("byClock", .flag, "Whether the time was over.")])

    static let gameResult = Self.form("GameResultData", Self.room(), Self.turnParts, [.always("won", .flag, "Whether the player has won.")])

    static let gameEnded = Self.form(
        "GameEndedData", Self.room(), Self.turnParts,
        [
            .always(
                "endReason", .words(["result", "noResult", "playerLeft", "deviceGone", "serverRestart", "ended"]), "Why the game is over.")
        ])
}
