import ArgumentParser
import CommandSupport
import FFmpeg
import Foundation
import Support

/// `earshot talk`: shows talk channels, listens to them and speaks into them.
struct TalkCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "talk",
        abstract: "Show who talks in a room; listen to it and speak into it.",
        discussion: """
            A live room has a talk channel. These commands join it as clients do, with a token that the server makes for them.

            EXAMPLES
              earshot talk show cam1
              earshot talk listen cam1 --seconds 10 -o heard.wav
              earshot talk listen cam1 --as ann | ffplay -
              earshot talk speak cam1 --as ops announcement.mp3

            \(ExitStatus.explanation)
            """,
        subcommands: [Show.self, Listen.self, Speak.self])

    struct Show: ServerCommand {
        static let configuration = CommandConfiguration(abstract: "Show a room's talk channel, and who is in it.")
        @Argument(help: ArgumentHelp("The room.", valueName: "ROOM")) var room: String
        @OptionGroup var options: ServerOptions

        func run(_ api: APIClient) async throws {
            let talk = try await api.get(["rooms", self.room, "talk"])
            if self.options.json { return try Console.print(talk.indented()) }
            let members = talk["members"].list
            if self.options.quiet { return try members.forEach { try Console.print(DisplayText.escaped($0["userId"].plain ?? "")) } }
            var facts = Facts()
            facts.add("mode", talk["mode"].string)
            facts.add("may speak", Self.names(talk["holders"]))
            facts.add("waiting", Self.names(talk["waiting"]))
            facts.add("listening", talk["listening"].plain)
            facts.add("mixes", talk["mixes"].plain)
            for member in members { facts.add(member["userId"].plain ?? "-", Self.line(member)) }
            try facts.print()
        }

        private static func names(_ list: JSONValue?) -> String? {
            list.list.isEmpty ? nil : list.list.compactMap(\.string).joined(separator: ", ")
        }

        private static func line(_ member: JSONValue?) -> String {
            var words = [member["role"].plain ?? "-", member["codec"].string ?? "no voice yet"]
            if member["muted"].bool == true { words.append("muted") }
            words.append(member["speaking"].bool == true ? "speaking" : "silent")
            if let level = member["levelDb"].plain { words.append("\(level) dB") }
            words.append("\(member["delayMs"].plain ?? "-") ms late, jitter \(member["jitterMs"].plain ?? "-") ms")
            if let underruns = member["underruns"].integer, underruns > 0 { words.append("\(underruns) gaps") }
            return words.joined(separator: ", ")
        }
    }

    struct Listen: ServerCommand {
        static let configuration = CommandConfiguration(
            abstract: "Write the sound of a room's talk channel to a WAV file.",
            discussion: "Without --seconds it ends with the channel, or by Ctrl-C.")
        @Argument(help: ArgumentHelp("The room.", valueName: "ROOM")) var room: String
        @Option(name: .customLong("as"), help: ArgumentHelp("Hear what this participant hears: everybody else.", valueName: "USER"))
        var user: String?
        @Option(help: ArgumentHelp("Hear only this participant, as sent.", valueName: "USER")) var voice: String?
        @Option(name: .shortAndLong, help: ArgumentHelp("The file to write; - is standard output.", valueName: "FILE")) var output = "-"
        @Option(help: "How many seconds to listen.") var seconds: Double?
        @OptionGroup var options: ServerOptions

        func validate() throws {
            guard self.user == nil || self.voice == nil else { throw ValidationError("--as and --voice exclude each other.") }
            guard self.seconds.map({ $0 > 0 && $0 <= 86_400 }) ?? true else {
                throw ValidationError("--seconds must be more than 0 and at most 86400.")
            }
        }

        func run(_ api: APIClient) async throws {
            let user = self.user ?? "cli-\(UInt32.random(in: 0...UInt32.max))"
            let urls = try await TalkCommand.token(api, self.room, user, "listener")
            guard var play = urls["play"].string else { throw CommandFailure(.failed, "the server sent no address to listen at") }
            // The same token is valid for the room's other mixes.
            if self.user == nil { play = play.replacingOccurrences(of: "/mix-\(user)?", with: "/\(self.voice ?? "mix")?") }
            let writer: WAVWriter
            do throws(FFmpegError) { writer = try WAVWriter(self.output) } catch { throw CommandFailure(.failed, "\(error)") }
            let heard = try await TalkLine.listen(play, to: writer, seconds: self.seconds)
            if !self.options.quiet { Console.complain(String(format: "%.1f seconds heard", heard)) }
        }
    }

    struct Speak: ServerCommand {
        static let configuration = CommandConfiguration(abstract: "Speak a sound file into a room, in real time.")
        @Argument(help: ArgumentHelp("The room.", valueName: "ROOM")) var room: String
        @Argument(help: ArgumentHelp("A file in any format that FFmpeg reads; - is standard input.", valueName: "FILE"))
        var file: String
        @Option(name: .customLong("as"), help: ArgumentHelp("The user to speak as.", valueName: "USER")) var user: String
        @Option(help: "The speaker's role, which decides who goes first: host, cohost or guest.") var role = "guest"
        @OptionGroup var options: ServerOptions

        func run(_ api: APIClient) async throws {
            let reader: AudioFileReader
            do throws(FFmpegError) { reader = try AudioFileReader(self.file) } catch {
                throw CommandFailure(.failed, "\(self.file) cannot be read: \(error)")
            }
            let urls = try await TalkCommand.token(api, self.room, self.user, self.role)
            guard let publish = urls["publish"].string else {
                throw CommandFailure(.failed, "a listener cannot speak; give another --role")
            }
            let spoken = try await TalkLine.speak(publish, from: reader) { frames in
                try Self.checkAudible(try await api.get(["rooms", self.room, "talk"]), self.user, frames)
            }
            if !self.options.quiet { Console.complain(String(format: "%.1f seconds spoken", spoken)) }
        }

        /// Checks that the voice was heard. A speaker without the floor is admitted but not heard, and RTMP does not report that.
        private static func checkAudible(_ talk: JSONValue?, _ user: String, _ frames: Int) throws {
            let member = talk["members"].list.first { $0["userId"].string == user }
            guard let unheard = member?["mutedFrames"].integer, frames > 0, unheard > 0 else { return }
            let holders = talk["holders"].list.compactMap(\.string).map(DisplayText.escaped).joined(separator: ", ")
            let why =
                member?["muted"].bool == true
                ? "\(user) is muted" : holders.isEmpty || holders == user ? "\(user) did not have the floor" : "\(holders) had the floor"
            let share = min(100, Int(unheard) * 100 / frames)
            guard share < 90 else { throw CommandFailure(.conflict, "nobody heard it: \(why)") }
            if share > 5 { Console.complain("earshot: \(share) % of it was not heard: \(why)") }
        }
    }

    fileprivate static func token(_ api: APIClient, _ room: String, _ user: String, _ role: String) async throws -> JSONValue {
        try await api.post(["rooms", room, "talk", "token"], ["userId": .string(user), "role": .string(role), "lifetime": .integer(60)])
    }
}
