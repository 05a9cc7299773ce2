package import ArgumentParser
import CommandSupport
import Doctor

/// The commands of the command line, in the order of its help. Serving is the program's own.
package enum CommandList {
    /// Those about this machine's server, its settings and files.
    package static let ofThisMachine: [any ParsableCommand.Type] = [
        Config.self, TokenCommand.self, KeysCommand.self, StoreCommand.self, DoctorCommand.self, HealthCommand.self, ReloadCommand.self,
        DrainCommand.self,
    ]
    /// Those that call a running server.
    package static let ofRunningServer: [any ParsableCommand.Type] = [
        RoomsCommand.self, StreamsCommand.self, SessionsCommand.self, EventsCommand.self, RecordingsCommand.self, TalkCommand.self,
        LinksCommand.self, WebhooksCommand.self, AuditCommand.self, GatheringsCommand.self, NodesCommand.self,
        SelfcheckCommand.self, StatsCommand.self, ConsoleCommand.self,
    ]
    /// The statuses with which commands end, for the help.
    package static let exitStatuses = ExitStatus.explanation

    /// The mistake in a mistyped command, in words; nil when it is something else.
    package static func mistake(in arguments: [String], of root: any ParsableCommand.Type) -> String? {
        CommandSuggestion.mistake(in: arguments, of: root)
    }
}
