import ArgumentParser
import CommandSupport
import Support

/// `earshot rooms`: URLs to push and play.
extension RoomsCommand {
    struct PushURL: ServerCommand {
        static let configuration = CommandConfiguration(
            commandName: "push-url", abstract: "Make a signed URL to push to a room.",
            discussion: """
                Anybody who has the URL may push until it expires; a push that is running then goes on. --quiet prints only the rtmp:// \
                URL.

                EXAMPLES
                  ffmpeg -re -i VIDEO -c copy -f flv "$(earshot rooms push-url demo --quiet)"
                  earshot rooms push-url stage --slot 2 --lifetime 1h --scheme jwt
                """)
        @Argument(help: ArgumentHelp("The room's id.", valueName: "ID")) var room: String
        @Option(help: ArgumentHelp("The stream's slot in the room. (default: 1)", valueName: "N"))
        var slot: Int?
        @Flag(help: "Put the room's device into the URL instead of the stream's name.")
        var byDevice = false
        @OptionGroup var signing: SigningOptions
        @OptionGroup var options: ServerOptions

        func run(_ api: APIClient) async throws {
            var body: [String: JSONValue] = [:]
            body["slot"] = self.slot.map { .integer(Int64($0)) }
            if self.byDevice { body["by"] = "device" }
            body["lifetime"] = self.signing.lifetime?.json
            body["scheme"] = self.signing.scheme.map(JSONValue.string)
            body["userId"] = self.signing.user.map(JSONValue.string)
            try URLText.print(try await api.post(["rooms", self.room, "push-url"], body), self.options)
        }
    }

    struct PlayURLs: ServerCommand {
        static let configuration = CommandConfiguration(
            commandName: "play-urls", abstract: "Show the URLs to play a room.",
            discussion: "--quiet prints only the rtmp:// URLs, one per stream.")
        @Argument(help: ArgumentHelp("The room's id.", valueName: "ID")) var room: String
        @OptionGroup var signing: SigningOptions
        @OptionGroup var options: ServerOptions

        func run(_ api: APIClient) async throws {
            let query = [
                ("lifetime", self.signing.lifetime?.json.plain), ("scheme", self.signing.scheme), ("userId", self.signing.user),
            ]
            try URLText.print(try await api.get(["rooms", self.room, "play-urls"], query), self.options)
        }
    }
}

/// The kind of credential in a URL, and its lifetime.
struct SigningOptions: ParsableArguments {
    @Option(help: ArgumentHelp("How long the URL may be used. (default: as the room's policy says)", valueName: "TIME"))
    var lifetime: Span?
    @Option(help: ArgumentHelp("txSecret or jwt. (default: txSecret)", valueName: "SCHEME"))
    var scheme: String?
    @Option(name: .option(.userID), help: ArgumentHelp("The user whom the URL is for; makes a jwt.", valueName: "USER"))
    var user: String?
}

/// Formats URLs as text. Never cut, since they are meant to be copied.
enum URLText {
    static func print(_ data: JSONValue, _ options: ServerOptions) throws {
        if options.json { return try Console.print(data.indented()) }
        // The answer holds one stream, or a list of streams and perhaps the mix of their room's talk.
        var parts = [data["streams"].list, data["list"].list].first { !$0.isEmpty } ?? [data]
        if let talk = data["talk"], !talk.isNull, !options.quiet { parts.append(talk) }
        for (index, part) in parts.enumerated() {
            let urls = part["playUrls"].isNull ? part : part["playUrls"]
            if options.quiet {
                if let url = urls["rtmp"].string { try Console.print(DisplayText.escaped(url)) }
                continue
            }
            if index > 0 { try Console.print("") }
            var facts = Facts()
            facts.add("slot", part["slot"].plain)
            if let app = part["app"].plain, let name = part["name"].plain { facts.add("stream", "\(app)/\(name)") }
            for field in urls.fields where !["roomId", "slot", "app", "name"].contains(field.name) {
                guard let text = field.value.string else { continue }
                if Moment(argument: text) != nil { facts.add("expires", time: field.value) } else { facts.add(field.name, text) }
            }
            try facts.print()
        }
    }
}
