import ArgumentParser
import CommandSupport
import Support

/// `earshot recordings`: shows, starts, stops and deletes recordings.
struct RecordingsCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "recordings",
        abstract: "List recordings; start, stop and delete them.",
        discussion: """
            A recording is an MP4 file on the server. These commands record one stream of a room. The setting recording.apps and a \
            room's policy record=always record streams whenever they are live.

            EXAMPLES
              earshot recordings start r1
              earshot recordings stop r1
              earshot recordings list --room-id r1

            \(ExitStatus.explanation)
            """,
        subcommands: [List.self, Show.self, Start.self, Stop.self, Delete.self],
        defaultSubcommand: List.self)

    struct List: ServerCommand {
        static let configuration = CommandConfiguration(abstract: "List recordings, the newest first.")
        @Option(name: .option(.roomID), help: ArgumentHelp("Only those of this room.", valueName: "ID"))
        var room: String?
        @Option(help: ArgumentHelp("Only those of this stream.", valueName: "APP/NAME"))
        var stream: StreamArgument?
        @Option(help: ArgumentHelp("Only those in this state: recording, finishing, finished, failed, deleted.", valueName: "STATE"))
        var state: String?
        @OptionGroup var page: PageOptions
        @OptionGroup var options: ServerOptions

        func run(_ api: APIClient) async throws {
            let query = [("roomId", self.room), ("app", self.stream?.app), ("name", self.stream?.name), ("state", self.state)]
            let listing = Listing(
                path: ["recordings"], query: query, things: "recordings",
                columns: [
                    .left("ID"), .left("STATE"), .left("BECAUSE"), .left("BEGAN"), .right("LENGTH"), .right("SIZE"), .text("STREAM"),
                    .text("ROOM"),
                ],
                id: { $0["recordingId"].string }, row: RecordingText.row, size: ("limit", 1_000))
            try await listing.show(api, self.options, count: self.page.count)
        }
    }

    struct Show: ServerCommand {
        static let configuration = CommandConfiguration(abstract: "Show a recording's details.")
        @Argument(help: ArgumentHelp("The recording's id.", valueName: "ID")) var recording: String
        @OptionGroup var options: ServerOptions

        func run(_ api: APIClient) async throws {
            let recording = try await api.get(["recordings", self.recording])
            if self.options.json { return try Console.print(recording.indented()) }
            if self.options.quiet { return try Console.print(DisplayText.escaped(recording["recordingId"].string ?? "")) }
            try RecordingText.print(recording)
        }
    }

    struct Start: ServerCommand {
        static let configuration = CommandConfiguration(abstract: "Record a room's stream until it ends or is stopped.")
        @OptionGroup var slot: RecordedSlot
        @OptionGroup var options: ServerOptions

        func run(_ api: APIClient) async throws { try await self.slot.order("start", "is being recorded", api, self.options) }
    }

    struct Stop: ServerCommand {
        static let configuration = CommandConfiguration(abstract: "End the recording of a room's stream.")
        @OptionGroup var slot: RecordedSlot
        @OptionGroup var options: ServerOptions

        func run(_ api: APIClient) async throws { try await self.slot.order("stop", "is not recorded any more", api, self.options) }
    }

    struct Delete: ServerCommand {
        static let configuration = CommandConfiguration(abstract: "Delete a recording's file.")
        @Argument(help: ArgumentHelp("The recording's id.", valueName: "ID")) var recording: String
        @OptionGroup var options: ServerOptions

        func run(_ api: APIClient) async throws {
            let id = self.recording
            try self.options.report(try await api.delete(["recordings", id])) { _ in "recording \(id) is deleted" }
        }
    }
}

/// The stream to start or stop recording.
struct RecordedSlot: ParsableArguments {
    @Argument(help: ArgumentHelp("The room's id.", valueName: "ROOM")) var room: String
    @Option(help: ArgumentHelp("The stream's slot in the room.", valueName: "N"))
    var slot = 1

    /// `outcome` is the new state as text.
    func order(_ action: String, _ outcome: String, _ api: APIClient, _ options: ServerOptions) async throws {
        let body: [String: JSONValue] = ["action": .string(action), "slot": .integer(Int64(self.slot))]
        try options.report(try await api.post(["rooms", self.room, "record"], body)) {
            "\(RecordingText.stream($0) ?? "the stream") \(outcome)"
        }
    }
}

/// Formats recordings as text.
enum RecordingText {
    static func stream(_ recording: JSONValue?) -> String? {
        guard let app = recording["app"].string, let name = recording["name"].string else { return nil }
        return DisplayText.escaped("\(app)/\(name)")
    }

    static func row(_ recording: JSONValue) -> [Table.Cell] {
        let isRunning = recording["state"].string == "recording"
        return [
            .init(recording["recordingId"].string), .init(recording["state"].string), .init(recording["reason"].string),
            .init(recording["startedAt"].string.map(TimeText.short)),
            .init(isRunning ? TimeText.age(recording["startedAt"]) : TimeText.duration(seconds: recording["duration"])),
            .init(HumanUnits.bytes(recording["bytes"].integer)), .init(self.stream(recording)), .init(recording["roomId"].plain),
        ]
    }

    static func print(_ recording: JSONValue?) throws {
        var facts = Facts()
        facts.add("recording", recording["recordingId"].string)
        facts.add("state", recording["state"].string)
        facts.add("because", recording["reason"].string)
        facts.add("stream", self.stream(recording))
        facts.add("room", recording["roomId"].plain)
        facts.add("part", recording["part"].plain.map { "\($0) of task \(recording["taskId"].string ?? "-")" })
        facts.add("began", time: recording["startedAt"])
        facts.add("ended", time: recording["endedAt"])
        facts.add("length", TimeText.duration(seconds: recording["duration"]))
        facts.add("size", HumanUnits.bytes(recording["bytes"].integer))
        let size = recording["width"].integer.flatMap { width in recording["height"].integer.map { "\(width)x\($0)" } }
        facts.add("video", [recording["videoCodec"].string, size].compactMap { $0 }.joined(separator: ", "))
        facts.add("audio", recording["audioCodec"].string)
        if let dropped = recording["droppedFrames"].integer, dropped > 0 { facts.add("frames left out", "\(dropped)") }
        facts.add("file", recording["file"].string)
        facts.add("download", recording["url"].string)
        try facts.print()
    }
}
