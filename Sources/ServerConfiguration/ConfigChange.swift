/// The difference between a running configuration and a new one. A value.
package struct ConfigChange: Sendable {
    /// One changed setting, with its values as in the file. Hides the values of secrets, and of URLs that may hold one.
    package struct Setting: Sendable, Equatable {
        package let path: String
        /// Nil: not set, or hidden.
        package let from: String?
        package let to: String?
        package let isHidden: Bool

        /// "limits.connections 20000 → 100"
        package var description: String {
            self.isHidden ? "\(self.path) (not shown)" : "\(self.path) \(Self.shown(self.from)) → \(Self.shown(self.to))"
        }

        private static func shown(_ value: String?) -> String {
            guard let value else { return "not set" }
            return value.isEmpty ? "empty" : value
        }
    }

    /// The settings to run with: new values of settings that apply at a reload, running values of the others.
    package let config: ServerConfig
    package let applied: [Setting]
    /// Changed settings that keep their former values until a restart.
    package let waiting: [Setting]
}

extension ServerConfig {
    /// Compares with new settings, which must have been checked.
    package func adopting(_ new: ServerConfig) -> ConfigChange {
        var config = self
        var applied: [ConfigChange.Setting] = []
        var waiting: [ConfigChange.Setting] = []
        for setting in ConfigSetting.all {
            let (old, wanted) = (setting.values(self), setting.values(new))
            guard old != wanted else { continue }
            let change = ConfigChange.Setting(
                path: setting.path, from: setting.shownValue(self), to: setting.shownValue(new), isHidden: setting.isHidden)
            if setting.applies == .reload, !self.turnsTLS(setting.path, new) {
                setting.copy(new, &config)
                applied.append(change)
            } else {
                waiting.append(change)
            }
        }
        return ConfigChange(config: config, applied: applied, waiting: waiting)
    }

    /// Whether the change opens or closes the TLS ports, which needs a restart; another file for the same ports does not.
    private func turnsTLS(_ path: String, _ new: ServerConfig) -> Bool {
        ["rtmps.certificate", "rtmps.key"].contains(path) && (self.rtmps.certificate == nil || new.rtmps.certificate == nil)
    }
}
