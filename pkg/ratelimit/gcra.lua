-- KEYS[1]: the caller. ARGV: microseconds per permit, microseconds of the period, permits wanted.
-- Returns the permits granted, the permits left, and the microseconds until all permits are available.
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000000 + tonumber(time[2])
local interval, period, wanted = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local back = math.max(tonumber(redis.call('GET', KEYS[1]) or '0'), now)
local room = math.max(math.floor((now + period - back) / interval + 0.000001), 0)
local given = math.min(wanted, room)
if given > 0 then
  back = back + given * interval
  redis.call('SET', KEYS[1], string.format('%.3f', back), 'PX', math.ceil((back - now) / 1000) + 1)
end
return {given, room - given, math.ceil(back - now)}
