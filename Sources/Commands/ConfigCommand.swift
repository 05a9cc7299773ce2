import ArgumentParser
import CommandSupport
import Listening
import ServerConfiguration

struct Config: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Check or show the settings.", subcommands: [Check.self, Show.self, Reference.self])

    struct Check: ParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Check the settings and list every one with a mistake.")
        @OptionGroup var settings: SettingsOptions

        func run() throws {
            let loaded = try self.settings.load()
            let config = loaded.config
            do throws(CertificateStore.Mismatch) { _ = try CertificateStore.pair(config.rtmps.files) } catch {
                throw CommandFailure(.failed, error.description)
            }
            print("The configuration is valid.")
            for warning in loaded.warnings { Console.complain("warning: \(warning).") }
        }
    }

    struct Show: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "print", abstract: "Print every setting as YAML, with its value, source and meaning.")
        @OptionGroup var settings: SettingsOptions

        func run() throws { print(try self.settings.load().yaml, terminator: "") }
    }

    struct Reference: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Print the reference of all settings as Markdown: defaults, accepted values, meaning.")

        func run() { print(ConfigReference.markdown, terminator: "") }
    }
}
