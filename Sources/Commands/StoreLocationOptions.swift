import ArgumentParser
import CommandSupport
import RoomRegistry
import ServerConfiguration
import ServerData
import Store

/// The location of this machine's server's tokens and rooms: its data directory, or the database of its settings.
struct StoreLocationOptions: ParsableArguments {
    @OptionGroup var directory: DataDirectoryOption
    @Option(
        help: ArgumentHelp(
            "The server's YAML file of settings, if it has database.url; EARSHOT_DATABASE_URL names a database, too.", valueName: "FILE"))
    var config: String?

    /// The settings are read only if they may name a database.
    func location() throws -> StoreLocation {
        let hasVariable = Console.variable("EARSHOT_DATABASE_URL").map { !$0.isEmpty } ?? false
        guard self.config != nil || hasVariable else { return .folder(self.directory.path) }
        return StoreLocation(try SettingsOptions.load(file: self.config, flags: ["data.directory": self.directory.data]).config)
    }
}
