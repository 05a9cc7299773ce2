import HTTPAPI
import HTTPTypes
import Rooms
import ServerConfiguration
import Support

enum SettingRoutes {
    /// The settings of the running server, for people.
    static let all: [ControlRoute] = [
        ControlRoute(
            .get, "/server/settings", "listSettings", .server, .admin, .server,
            "List every setting with its value in force and where that comes from. Secrets, and addresses that may hold one, are not shown.",
            answers: SettingListAnswer.outputType
        ) { call in
            SettingListAnswer(list: try call.services.runs().settings)
        }
    ]
}

struct SettingListAnswer: Sendable {
    let list: [SettingInForce]

    static let outputType = OutputType<SettingListAnswer>.object(
        "SettingList", [.field("list", .list(SettingInForce.outputType), "The settings, in the order of the reference.", \.list)])
}

extension SettingInForce {
    /// The kind of source of a value.
    fileprivate enum Source: String, Sendable, CaseIterable {
        case defaults = "default"
        case file, environment, flag
    }

    fileprivate var source: Source {
        switch self.origin {
        case .defaults: .defaults
        case .file: .file
        case .environment: .environment
        case .flag: .flag
        }
    }

    /// The file with its line, the variable or the flag; nil for a default.
    fileprivate var place: String? {
        switch self.origin {
        case .defaults: nil
        case .file: self.origin.description
        case .environment(let name), .flag(let name): name
        }
    }

    static let outputType = OutputType<SettingInForce>.object(
        "Setting",
        [
            .field("setting", .text, "Its path, such as limits.connections.", \.path),
            .field("help", .text, "What it means.", \.help),
            .field("environment", .text, "Its environment variable.", \.environmentName),
            .field("value", .nullable(.text), "The value in force, as in the file; null when not set, and when it is hidden.", \.value),
            .field("isSet", .flag, "Whether it has a value.", \.isSet),
            .field("isHidden", .flag, "Whether its value is never shown: a secret, or an address that may hold one.", \.isHidden),
            .field("source", .choice(), "Where the value comes from.", \.source),
            .field(
                "place", .nullable(.text), "The file and the line, the environment variable, or the flag; null for a default.", \.place),
            .field("needsRestart", .flag, "Whether a change of it waits for a restart; others apply at a reload.") {
                $0.applies == .restart
            },
        ])
}
