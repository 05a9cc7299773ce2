import HTTPAPI
import Talkback

extension Metrics {
    mutating func addTalk(_ totals: TalkTotals) {
        self.page.gauge(
            "earshot_talk_delay_seconds", "Time from the arrival of a talker's voice to its mix, for the latest talker now.",
            totals.delayMs / 1_000)
    }
}
