/// One setting as a running server has it, for people: with its source, and without secrets. A value.
package struct SettingInForce: Sendable {
    package let path: String
    /// One line.
    package let help: String
    package let environmentName: String
    /// The value in the form of the file; nil when it is not set, or hidden.
    package let value: String?
    package let isSet: Bool
    /// Whether the value is never shown: a secret, or a URL that may hold one.
    package let isHidden: Bool
    package let origin: ConfigOrigin
    package let applies: ConfigSetting.Application
}

extension ServerConfig {
    /// Every setting, in the order of the reference. `origins`: the sources by setting; a default has none.
    package func settings(from origins: [String: ConfigOrigin]) -> [SettingInForce] {
        ConfigSetting.all.map { setting in
            SettingInForce(
                path: setting.path, help: setting.help, environmentName: setting.environmentName, value: setting.shownValue(self),
                isSet: setting.values(self) != nil, isHidden: setting.isHidden, origin: origins[setting.path] ?? .defaults,
                applies: setting.applies)
        }
    }
}

extension ConfigSetting {
    /// Whether the value is kept out of answers and logs: a secret, or an address whose path or query may hold a credential.
    var isHidden: Bool { self.isSecret || Self.hidden.contains { self.path.hasPrefix($0) } }

    /// The value as in the file; nil when it is not set, or hidden.
    func shownValue(_ config: ServerConfig) -> String? {
        self.isHidden ? nil : self.values(config).map { self.isList ? "[\($0.joined(separator: ", "))]" : $0.joined() }
    }

    private static let hidden = ["hooks.on", "webhooks.urls", "webhooks.tencentUrls", "drain.reconnectTo", "apps.classroom."]
}
